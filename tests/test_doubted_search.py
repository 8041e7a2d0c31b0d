"""A search in which one process was fast by chance, on a job that exists on paper alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hotloop.study import Options
from hotloop.trial.order import Order
from hotloop.trial.trial import Trial
from tests import builders
from tests.searching import PaperJob, found, levers, reasons, search
from tests.simulated import gains


def lucky(order: Order, trial: Trial) -> Trial:
    """A tenth faster, but only when it is screened."""
    if order.purpose != "screen" or trial.measurement is None:
        return trial
    log = builders.Log()
    for _ in range(20):
        log.data(3.6, 8).forward(5.4, 8).backward(7.2).optimizer(1.8)
    return replace(trial, measurement=replace(trial.measurement, events=log.events))


def test_a_gain_by_chance_costs_a_round_or_two_and_no_examination(tmp_path: Path) -> None:
    paper = PaperJob(gains(), answer=lucky)
    record = search(paper, tmp_path, Options(only=("bf16",)))
    assert paper.purposes.count("again") in (2, 4)
    assert not {"reference", "soak", "proof"} & {*paper.purposes}
    assert found(record).plan is None
    assert found(record).verdict == (
        "Nothing was found that makes this job faster: 1 optimisation tried."
    )
    assert reasons(record)["bf16"].startswith("looked at again, it was ")


def test_a_small_gain_that_holds_goes_on_to_be_proven(tmp_path: Path) -> None:
    paper = PaperJob(gains(bf16=1.1))
    won = found(search(paper, tmp_path, Options(only=("bf16",))))
    assert paper.purposes.count("again") == 4
    assert won.plan is not None and levers(won.plan) == {"bf16"}
