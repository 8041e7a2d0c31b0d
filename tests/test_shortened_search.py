"""A search that may cut sequences, on a job that exists on paper alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hotloop.measurement import LoopSeen
from hotloop.study import Options
from hotloop.trial.order import Order
from hotloop.trial.trial import Trial
from tests.searching import PaperJob, found, levers, reasons, search
from tests.simulated import gains

TRIED = ("context_length", "bf16")


def described(order: Order, trial: Trial) -> Trial:
    """The job's loop is ours, and trains on sequences."""
    assert trial.measurement is not None
    loop = LoopSeen(8, 8, resizable=False, length=1024)
    seen = replace(trial.measurement.inventory, loop=loop)
    return replace(trial, measurement=replace(trial.measurement, inventory=seen))


def test_the_faster_length_is_handed_out_and_said_to_be_another_training(tmp_path: Path) -> None:
    paper = PaperJob(gains(**{"context_length:2": 1.3, "context_length:4": 1.6}), answer=described)
    won = found(search(paper, tmp_path, Options(effect="changes_training", only=TRIED)))
    assert won.plan is not None and won.plan.levers[0].setting == {"parts": 4}
    assert won.proof is not None and won.proof.comparison.ratio == pytest.approx(1.6, rel=0.05)
    assert won.verdict.endswith("faster, and another training: context_length.")
    assert won.equivalence is not None and won.equivalence.changed == ("context_length",)


def test_what_else_is_in_the_plan_is_still_compared(tmp_path: Path) -> None:
    paper = PaperJob(gains(context_length=1.3, bf16=1.5), answer=described)
    won = found(search(paper, tmp_path, Options(effect="changes_training", only=TRIED)))
    assert won.plan is not None and levers(won.plan) == {"context_length", "bf16"}
    assert [plan for plan in paper.plans("candidate") if "context_length" in plan] == []
    assert paper.plans("candidate")


def test_unasked_no_sequence_is_cut(tmp_path: Path) -> None:
    paper = PaperJob(gains(context_length=1.3), answer=described)
    record = search(paper, tmp_path, Options(only=TRIED))
    assert "more than --effect allows" in reasons(record)["context_length"]
    assert not any("context_length" in plan for plan in paper.plans("screen"))
