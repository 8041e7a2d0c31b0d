"""The best precision × batch × accumulation for this machine, in few of the trials there could be.

One dimension after the other, each at the best of those before: formats at the smallest batch they
differ at, batches by doubling while that wins, then passes. What is handed out was run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import product
from typing import Any

from hotloop.experiments import words
from hotloop.experiments.base import Case, Experiment, Figure, Measured, Outcome, Series, lever
from hotloop.experiments.lab import Lab
from hotloop.experiments.precision import FORMATS

ON_CPU = {"context": 32, "width": 64, "layers": 2}
BATCHES = {True: (16, 32, 64, 128, 256, 512, 1024), False: (4, 8, 16, 32, 64)}
PARTS = (1, 2, 4)
"""Passes to a batch."""
WORTH = 1.03
SHARE = 0.25
"""Of all trials there could be, at the most."""


@dataclass(frozen=True)
class Point:
    form: str
    batch: int
    parts: int


Rate = Callable[[Point], float]


def search(formats: Iterable[str], batches: tuple[int, ...], rate: Rate) -> Point:
    """The fastest of the points that were asked for."""
    middle = batches[len(batches) // 2]
    form = max(formats, key=lambda form: rate(Point(form, middle, 1)))
    best = Point(form, middle, 1)
    for direction in (1, -1):
        place = batches.index(best.batch) + direction
        while 0 <= place < len(batches):
            tried = Point(form, batches[place], 1)
            if rate(tried) < WORTH * rate(best) and direction > 0:
                best = max(best, tried, key=rate)
                break
            if rate(tried) <= rate(best):
                break
            best, place = tried, place + direction
        if best.batch > middle:
            break  # larger won: smaller ones need no look
    passes = Point(best.form, best.batch, PARTS[1])
    return max(best, passes, key=rate)


class Best(Experiment):
    name = "best"
    summary = "C6: the best precision × accumulation × batch for this machine, in few trials"

    def run(self, lab: Lab) -> Outcome:
        grid = _Grid(lab)
        chosen = search(grid.formats, BATCHES[lab.on_gpu], grid.rate)
        tried, every = len(grid.measured), len(grid.points)
        measured = sorted(grid.measured.values(), key=lambda one: -(one.rate or 0.0))
        return Outcome(
            self.name,
            "The best setting for this machine",
            lab.where,
            ("setting", "samples/s", "a step", "memory"),
            tuple(_row(one) for one in measured),
            _figure(measured),
            (
                f"The fastest that was run: {_label(chosen)}.",
                f"{tried} of {every} settings were run, {tried / every:.0%}.",
                *words.failures(measured),
            ),
            tuple(measured),
            {"best": vars(chosen), "tried": tried, "of": every},
        )


class _Grid:
    """All settings there are, and those that were measured."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.formats = [
            name
            for name, form in FORMATS[lab.on_gpu].items()
            if lab.asked.precision in (None, form.get("precision", "float32"))
        ]
        sizes = product(self.formats, BATCHES[lab.on_gpu], PARTS)
        self.points = [Point(*each) for each in sizes]
        self.measured: dict[Point, Measured] = {}

    def rate(self, point: Point) -> float:
        """Samples a second; one that does not come to its end is the slowest of all."""
        if point not in self.measured:
            (self.measured[point],) = self._lab.measure([self._case(point)], runs=1)
        return self.measured[point].rate or 0.0

    def _case(self, point: Point) -> Case:
        workload = "resnet:ResNet18" if self._lab.on_gpu else "gpt:TinyGpt"
        settings: dict[str, Any] = {} if self._lab.on_gpu else dict(ON_CPU)
        settings |= {"batch_size": point.batch, **FORMATS[self._lab.on_gpu][point.form]}
        size = max(point.batch // point.parts, 1)
        levers = () if point.parts == 1 else (lever("microbatch", size=size),)
        return Case(_label(point), workload, settings, levers)


def _label(point: Point) -> str:
    passes = "" if point.parts == 1 else f" in {point.parts} passes"
    return f"{point.form}, batch {point.batch}{passes}"


def _row(one: Measured) -> tuple[str, ...]:
    return one.case.label, words.rate(one.rate), words.seconds(one.step), words.size(one.memory)


def _figure(measured: list[Measured]) -> Figure:
    points = tuple((one.case.label, one.rate) for one in measured if one.rate)
    return Figure("bars", "Samples a second, of what was run", "1/s", (Series("rate", points),))
