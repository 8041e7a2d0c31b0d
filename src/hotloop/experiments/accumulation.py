"""One batch in passes of every size: what time and memory each takes, and that all learn alike."""

from __future__ import annotations

from typing import Any

from hotloop.experiments import words
from hotloop.experiments.base import Case, Experiment, Figure, Measured, Outcome, Series, lever
from hotloop.experiments.lab import Lab

WORKLOAD = "gpt:TinyGpt"
ON_GPU = {"batch_size": 64, "context": 256, "width": 512, "layers": 8, "heads": 8}
ON_CPU = {"batch_size": 32, "context": 32, "width": 64, "layers": 2}
STEPS = 6
SAME = 1e-3
"""Mean distance of a weight, in units of the mean weight: AdamW divides by small numbers first."""


class Accumulation(Experiment):
    name = "accumulation"
    summary = "a batch in passes of every size, against the whole batch at once"

    def run(self, lab: Lab) -> Outcome:
        settings: dict[str, Any] = dict(ON_GPU if lab.on_gpu else ON_CPU)
        settings["batch_size"] = lab.asked.batch_size or settings["batch_size"]
        cases = [_case(settings, size) for size in _sizes(settings["batch_size"])]
        measured = lab.measure(cases)
        lab.trained(cases[0], weights_out="whole.pt", steps=STEPS)
        apart = [lab.trained(case, compare="whole.pt", steps=STEPS) for case in cases[1:]]
        return Outcome(
            self.name,
            "Gathering gradients",
            lab.where,
            ("samples a pass", "passes", "a step", "samples/s", "memory", "weights apart"),
            tuple(_rows(measured, settings["batch_size"], apart)),
            _figure(measured),
            _notes(measured, apart),
            tuple(measured),
            {"weights": apart, "steps": STEPS},
        )


def _sizes(batch: int) -> list[int]:
    sizes = [batch]
    while sizes[-1] > 1:
        sizes.append(sizes[-1] // 2)
    return sizes


def _case(settings: dict[str, Any], size: int) -> Case:
    whole = size == settings["batch_size"]
    levers = () if whole else (lever("microbatch", size=size),)
    return Case(f"{size}", WORKLOAD, settings, levers)


def _rows(
    measured: list[Measured], batch: int, apart: list[dict[str, Any]]
) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for place, one in enumerate(measured):
        size = int(one.case.label)
        told = apart[place - 1] if place else {}
        rows.append((
            one.case.label,
            str(-(-batch // size)),
            words.seconds(one.step),
            words.rate(one.rate),
            words.size(one.memory),
            "" if not place else words.number(told.get("mean_difference"), 2),
        ))  # fmt: skip
    return rows


def _figure(measured: list[Measured]) -> Figure:
    rates = tuple((one.case.label, one.rate) for one in reversed(measured) if one.rate)
    return Figure("lines", "Samples a second by samples a pass", "1/s", (Series("rate", rates),))


def _notes(measured: list[Measured], apart: list[dict[str, Any]]) -> tuple[str, ...]:
    distances = [told.get("mean_difference") for told in apart]
    known = [distance for distance in distances if distance is not None]
    if known and len(known) == len(apart) and max(known) < SAME:
        found = (
            f"All learn the same over {STEPS} steps: weights differ by {max(known):.1g} at most."
        )
    else:
        found = "Not all were shown to learn the same: see the last column."
    return (found, *words.failures(measured))
