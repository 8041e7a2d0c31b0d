"""Layers computed again instead of kept: what memory that saves, what time it takes, and the larger
batch that then fits into the memory of before."""

from __future__ import annotations

from typing import Any

from hotloop.experiments import words
from hotloop.experiments.base import Case, Experiment, Figure, Measured, Outcome, Series
from hotloop.experiments.lab import Lab

WORKLOAD = "gpt:TinyGpt"
ON_GPU = {"batch_size": 32, "context": 1024, "width": 768, "heads": 12, "layers": 12,
          "attention": "fused", "precision": "bfloat16"}  # fmt: skip
ON_CPU = {"batch_size": 32, "context": 128, "width": 64, "layers": 12, "vocabulary": 64,
          "attention": "fused", "pool": 64}  # fmt: skip
MOST_DOUBLINGS = 5


class Checkpointing(Experiment):
    name = "checkpointing"
    summary = "activation memory against time, and the larger batch that then fits"

    def run(self, lab: Lab) -> Outcome:
        settings: dict[str, Any] = dict(ON_GPU if lab.on_gpu else ON_CPU)
        settings["batch_size"] = batch = lab.asked.batch_size or settings["batch_size"]
        kept, again, small, small_again = lab.measure([
            _case("layers kept", settings, batch, False),
            _case("layers computed again", settings, batch, True),
            _case("layers kept, one sample", settings, 1, False),
            _case("computed again, one sample", settings, 1, True),
        ])  # fmt: skip
        tried = _larger(lab, settings, kept, again)
        fits = [one for one in (again, *tried) if _fits(one, kept)]
        rows = [
            _row(kept, kept, small),
            _row(again, kept, small_again),
            *(_row(one, kept, small_again) for one in tried),
        ]
        return Outcome(
            self.name,
            "Computing layers again",
            lab.where,
            ("", "a step", "time a sample", "memory", "activations"),
            tuple(rows),
            _figure([kept, again, *tried]),
            (*_notes(kept, again, small, small_again, fits), *words.failures(tried)),
            (kept, again, small, small_again, *tried),
        )


def _case(label: str, settings: dict[str, Any], batch: int, again: bool) -> Case:
    return Case(label, WORKLOAD, {**settings, "batch_size": batch, "recompute": again})


def _larger(lab: Lab, settings: dict[str, Any], kept: Measured, again: Measured) -> list[Measured]:
    """Doubled as long as it fits into what the job took before."""
    tried: list[Measured] = []
    size = int(settings["batch_size"])
    while _fits(tried[-1] if tried else again, kept) and len(tried) < MOST_DOUBLINGS:
        size *= 2
        case = _case(f"computed again, batch {size}", settings, size, True)
        tried += lab.measure([case], runs=1)
    return tried


def _fits(one: Measured, kept: Measured) -> bool:
    return one.memory is not None and kept.memory is not None and one.memory <= kept.memory


def activations(one: Measured, small: Measured) -> int | None:
    """What grows with the batch: the peak without that of a single sample."""
    if one.memory is None or small.memory is None:
        return None
    batch = int(one.case.settings["batch_size"])
    return round((one.memory - small.memory) * batch / max(batch - 1, 1))


def _row(one: Measured, kept: Measured, small: Measured) -> tuple[str, ...]:
    slower = _slower(one, kept)
    return (
        one.case.label,
        words.seconds(one.step),
        "" if one is kept else words.percent(slower),
        words.size(one.memory),
        words.size(activations(one, small)),
    )


def _slower(one: Measured, kept: Measured) -> float | None:
    """Time for a sample, against the layers kept."""
    return kept.rate / one.rate if kept.rate and one.rate else None


def _notes(
    kept: Measured, again: Measured, small: Measured, small_again: Measured, fits: list[Measured]
) -> tuple[str, ...]:
    before, after = activations(kept, small), activations(again, small_again)
    notes = list(words.failures([kept, again, small, small_again]))
    slower = _slower(again, kept)
    if before and after is not None and slower is not None:
        saved = 1 - after / before
        notes.append(f"Saves {saved:.0%} of the activations' memory for {slower - 1:+.0%} time.")
    if fits:
        largest = max(int(one.case.settings["batch_size"]) for one in fits)
        notes.append(f"In the memory of before there is room for a batch of {largest}.")
    return tuple(notes)


def _figure(measured: list[Measured]) -> Figure:
    points = tuple((one.case.label, one.memory / 2**20) for one in measured if one.memory)
    return Figure("bars", "Peak memory", "MiB", (Series("memory", points),))
