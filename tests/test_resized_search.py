"""A search that may change the batch, on a job that exists on paper alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hotloop import study
from hotloop.levers.base import Receipt
from hotloop.measurement import LoopSeen
from hotloop.report.search_rows import rows
from hotloop.study import Options, Study
from hotloop.trial.order import Order
from hotloop.trial.trial import State, Trial
from tests.searching import PaperJob, found, levers, reasons, search
from tests.simulated import Law

OWN = 8
ALLOWED = Options(effect="changes_training", only=("batch_size", "bf16"))


def size_of(chosen: frozenset[str]) -> int:
    sizes = [int(word.partition(":")[2]) for word in chosen if word.startswith("batch_size:")]
    return sizes[0] if sizes else OWN


def steps(full: int, bf16: float = 1.0) -> Law:
    """A step takes as long for any batch, up to one that fills the device."""

    def law(chosen: frozenset[str]) -> float:
        return max(size_of(chosen) / full, 1.0) / (bf16 if "bf16" in chosen else 1.0)

    return law


def described(most: int = 10**6) -> Callable[[Order, Trial], Trial]:
    """The job's loop is ours; batches beyond `most` do not fit."""

    def answer(order: Order, trial: Trial) -> Trial:
        size = next((o.setting["size"] for o in order.plan.levers if o.lever == "batch_size"), OWN)
        if size > most:
            reason = "The GPU's memory was exhausted after 1 step."
            return replace(trial, state=State.OUT_OF_MEMORY, reason=reason, measurement=None)
        assert trial.measurement is not None
        seen = replace(trial.measurement.inventory, loop=LoopSeen(size, size))
        seen = replace(seen, loaders=[replace(seen.loaders[0], samples=10_000)])
        receipts = tuple(
            Receipt(one.lever, True, evidence={"samples": size, "samples_before": OWN})
            for one in order.plan.levers
        )
        measured = replace(trial.measurement, inventory=seen)
        return replace(trial, measurement=measured, receipts=receipts)

    return answer


def searched(
    folder: Path, law: Law, most: int = 10**6, options: Options = ALLOWED
) -> tuple[PaperJob, Study]:
    paper = PaperJob(law, answer=described(most))
    return paper, search(paper, folder, options)


def test_the_fastest_size_is_proven_and_handed_out(tmp_path: Path) -> None:
    paper, record = searched(tmp_path, steps(64))
    won = found(record)
    assert won.plan is not None and levers(won.plan) == {"batch_size"}
    size = won.plan.levers[0].setting["size"]
    assert size >= 60
    assert won.proof is not None and won.proof.comparison.ratio == pytest.approx(8, rel=0.05)
    assert (
        won.verdict
        == f"{won.proof.comparison.ratio:.2f}× faster, and another training: batch_size."
    )
    assert won.soaked is not None and won.soaked.passed
    assert "candidate" not in paper.purposes  # there is nothing left to compare


def test_the_curve_is_kept_and_its_plateau_marked(tmp_path: Path) -> None:
    _, record = searched(tmp_path, steps(64), most=300)
    curve = found(study.load(tmp_path / "study.json")).sizes
    assert curve is not None and curve == found(record).sizes
    by_size = {point.size: point for point in curve.points}
    assert curve.plateau is not None and curve.plateau.size == 64
    assert by_size[OWN].rate == pytest.approx(OWN / 0.02, rel=0.01)
    assert by_size[64].rate == pytest.approx(64 / 0.02, rel=0.01)
    said = [text for label, text in rows(record).facts if label == "batch sizes"]
    assert len(said) == len(curve.points)
    assert sum("where the plateau begins" in text for text in said) == 1


@pytest.mark.parametrize("most", [8, 20, 64])
def test_out_of_memory_is_survived(most: int, tmp_path: Path) -> None:
    paper, record = searched(tmp_path, steps(1000), most)
    curve = found(record).sizes
    assert curve is not None
    failed = [point for point in curve.points if point.rate is None]
    assert failed and all("memory was exhausted" in point.reason for point in failed)
    plan = found(record).plan
    assert plan is None if most == OWN else plan is not None
    if plan is not None:
        size = plan.levers[0].setting["size"]
        assert size <= most
        ran = [order for order in paper.orders if order.plan.levers == plan.levers]
        assert len(ran) > 5  # it was run, and proven


def test_on_top_of_what_makes_the_job_fast(tmp_path: Path) -> None:
    paper, record = searched(tmp_path, steps(64, bf16=1.5))
    won = found(record)
    assert won.plan is not None and levers(won.plan) == {"batch_size", "bf16"}
    sized = [plan for plan in paper.plans("screen") if "batch_size" in plan]
    assert all("bf16" in plan for plan in sized)
    assert won.equivalence is not None
    assert won.equivalence.changed == ("batch_size",)
    assert won.equivalence.steps > 0  # bf16 was examined, by itself
    examined = paper.plans("candidate")
    assert examined and all(plan == {"bf16"} for plan in examined)
    assert "another training, by batch_size" in rows(record).headline


def test_a_size_that_wins_nothing_is_not_taken(tmp_path: Path) -> None:
    _, record = searched(tmp_path, steps(OWN))
    assert found(record).plan is None
    assert "Nothing was found" in found(record).verdict


def test_it_must_be_asked_for(tmp_path: Path) -> None:
    _, record = searched(tmp_path, steps(64), options=Options(only=("batch_size",)))
    assert found(record).sizes is None
    assert "changes_training is more than --effect allows" in reasons(record)["batch_size"]


def test_without_time_left_only_what_was_run_is_reported(tmp_path: Path) -> None:
    paper, record = searched(tmp_path, steps(1000), options=replace(ALLOWED, budget=30.0))
    curve = found(record).sizes
    ran = {o.setting.get("size") for order in paper.orders for o in order.plan.levers}
    assert curve is not None and {point.size for point in curve.points} == {OWN, *ran} - {None}
