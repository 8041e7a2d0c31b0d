"""Workers, prefetching and pinning against the real step: which loader keeps up."""

from __future__ import annotations

import os
from typing import Any

from hotloop.experiments import words
from hotloop.experiments.base import (
    Case,
    Experiment,
    Figure,
    Measured,
    Outcome,
    Series,
    gain,
    lever,
)
from hotloop.experiments.lab import Lab
from hotloop.plan import LeverSetting

WORKLOAD = "resnet:ResNet18"
ON_GPU = {"decode": True, "on_device": False, "batch_size": 64, "pool": 64}
ON_CPU = {
    "decode": True, "on_device": False, "batch_size": 16, "pool": 32,
    "size": 48, "width": 8, "classes": 10,
}  # fmt: skip
PREFETCH = (2, 4)


class Loader(Experiment):
    name = "loader"
    summary = "loader workers × prefetching × pinning, with pictures that are really decoded"

    def run(self, lab: Lab) -> Outcome:
        settings: dict[str, Any] = dict(ON_GPU if lab.on_gpu else ON_CPU)
        settings["batch_size"] = lab.asked.batch_size or settings["batch_size"]
        cases = [
            Case(_label(*each), WORKLOAD, settings, _levers(*each)) for each in _grid(lab.on_gpu)
        ]
        measured = lab.measure(cases)
        return Outcome(
            self.name,
            "Tuning the loader",
            lab.where,
            ("loader", "a step", "samples/s", "gain"),
            tuple(_row(measured[0], one) for one in measured),
            _figure(measured),
            _notes(measured),
            tuple(measured),
        )


def _grid(on_gpu: bool) -> list[tuple[int, int, bool]]:
    """Workers, batches each is ahead, pinned. Doubling up to the cores: all of them are run."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    counts, count = [0], 1
    while count <= (cores or 1):
        counts.append(count)
        count *= 2
    grid = [(0, 2, False)]
    for workers in counts[1:]:
        for prefetch in PREFETCH:
            grid += [
                (workers, prefetch, pinned) for pinned in ((False, True) if on_gpu else (False,))
            ]
    return grid


def _label(workers: int, prefetch: int, pinned: bool) -> str:
    if not workers:
        return "no worker"
    who = "1 worker" if workers == 1 else f"{workers} workers"
    return f"{who}, {prefetch} ahead{', pinned' if pinned else ''}"


def _levers(workers: int, prefetch: int, pinned: bool) -> tuple[LeverSetting, ...]:
    if not workers:
        return ()
    levers = (lever("loader_workers", workers=workers, prefetch=prefetch),)
    return (*levers, lever("pin_memory")) if pinned else levers


def _row(first: Measured, one: Measured) -> tuple[str, ...]:
    ratio = words.ratio(gain(first, one)) if one is not first else ""
    return one.case.label, words.seconds(one.step), words.rate(one.rate), ratio


def _figure(measured: list[Measured]) -> Figure:
    points = tuple((one.case.label, one.rate) for one in measured if one.rate)
    return Figure("bars", "Samples a second by loader", "1/s", (Series("rate", points),))


def _notes(measured: list[Measured]) -> tuple[str, ...]:
    best = max(measured, key=lambda one: one.rate or 0.0)
    found = (
        f"The fastest that was run: {best.case.label}." if best.ran else "Not one came to its end."
    )
    return (found, *words.failures(measured))
