"""The best precision × batch × accumulation for this machine, in few of the trials there could be.

One dimension after the other, each at the best of those before: formats at a middling batch,
batches by doubling as long as that wins, the second format again if it was close, then passes.
What is handed out was run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from hotloop.experiments import words
from hotloop.experiments.base import Case, Experiment, Figure, Measured, Outcome, Series, lever
from hotloop.experiments.exhaustive import Check, against_all
from hotloop.experiments.lab import Lab
from hotloop.experiments.precision import FORMATS

ON_CPU = {"context": 32, "width": 64, "layers": 2}
BATCHES = {True: (32, 64, 128, 256, 512), False: (4, 8, 16, 32, 64)}
PARTS = (1, 2, 4)
"""Passes to a batch."""
WORTH = 1.005
"""More than this a larger batch must win, for an even larger one to be tried."""
CLOSE = 0.9
"""A second format that is as fast as this may be the first with another batch."""
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
    ranked = sorted((Point(form, middle, 1) for form in formats), key=rate, reverse=True)
    best = _climbed(ranked[0], batches, rate)
    close = [second for second in ranked[1:2] if rate(second) > CLOSE * rate(ranked[0])]
    rivals = [Point(second.form, best.batch, 1) for second in close]
    passes = Point(best.form, best.batch, PARTS[1])
    return max((best, *rivals, passes), key=rate)


def _climbed(start: Point, batches: tuple[int, ...], rate: Rate) -> Point:
    """Larger batches as long as they win; smaller ones only if none did."""
    best = start
    for direction in (1, -1):
        place = batches.index(start.batch) + direction
        while 0 <= place < len(batches):
            tried = replace(start, batch=batches[place])
            won = rate(tried) / rate(best) if rate(best) else 0.0
            best = max(best, tried, key=rate)
            if won < WORTH:
                break
            place += direction
        if best != start:
            break
    return best


class Best(Experiment):
    name = "best"
    summary = "the best precision × accumulation × batch for this machine, in few runs"
    searches = True

    def run(self, lab: Lab) -> Outcome:
        grid = _Grid(lab)
        chosen = search(grid.formats, BATCHES[lab.on_gpu], grid.rate)
        tried, every = len(grid.measured), len(grid.points)
        measured = grid.fastest_first()
        ran = grid.rate(chosen) > 0
        check = grid.checked(chosen) if lab.asked.exhaustive else None
        return Outcome(
            self.name,
            "The best setting for this machine",
            lab.where,
            ("setting", "samples/s", "a step", "memory"),
            tuple(_row(one) for one in measured),
            _figure(measured),
            (
                f"The fastest that was run: {_label(chosen)}."
                if ran
                else "Not one came to its end.",
                f"{tried} of {every} settings were run for it, {tried / every:.0%}.",
                *([check.sentence] if check else []),
                *words.failures(measured),
            ),
            tuple(grid.fastest_first()),
            {
                "best": vars(chosen) if ran else None,
                "tried": tried,
                "of": every,
                "share": tried / every,
                "exhaustive": check.told if check else None,
            },
        )


class _Grid:
    """All settings there are, and those that were measured."""

    def __init__(self, lab: Lab) -> None:
        self._lab = lab
        self.formats = [
            name
            for name, form in FORMATS[lab.on_gpu].items()
            if lab.asked.precision in (None, form.get("precision", "float32"))
            and form.get("tf32") != "off"  # for comparison alone: nobody would choose it
        ]
        sizes = product(self.formats, BATCHES[lab.on_gpu], PARTS)
        self.points = [Point(*each) for each in sizes]
        self.measured: dict[Point, Measured] = {}

    def rate(self, point: Point) -> float:
        """Samples a second; one that does not come to its end is the slowest of all."""
        if point not in self.measured:
            (self.measured[point],) = self._lab.measure([self._case(point)], runs=1)
        return self.measured[point].rate or 0.0

    def fastest_first(self) -> list[Measured]:
        return sorted(self.measured.values(), key=lambda one: -(one.rate or 0.0))

    def checked(self, chosen: Point) -> Check:
        ranked = sorted(self.points, key=self.rate, reverse=True)
        others = [self._case(point) for point in ranked if point != chosen]
        return against_all(self._lab, self._case(chosen), others)

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
