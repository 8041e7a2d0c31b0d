"""Which lines of the script run, in its own process and in its loader's workers, by sampling."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hotloop.depth import DepthReport, SampledLine
from hotloop.inspection import Frame, Samples
from hotloop.runtime.deep.turn import Turn
from hotloop.runtime.look.loading import LoaderProbe
from hotloop.runtime.look.sampler import Sampler

LOOP = "_worker_loop"
"""torch's own: what a worker does until it is ended."""
FETCH = "fetcher.fetch("
UNSEEN = (
    "No lines of the loader's workers: they were not forked, or they ended before they left any."
)


class LineTurn(Turn):
    what = "sampled lines"
    _sampler: Sampler | None = None
    _has_workers = False

    @property
    def seconds(self) -> float:
        return self._deep.seconds

    def attach(self) -> None:
        """Workers are sampled from their first item on: they are forked before their turn."""
        self._loading = LoaderProbe(self._torch, self._folder)
        self._loading.attach(self._patches)
        self._watch.seams.loader.after.append(self._pass)

    def begin(self) -> None:
        self._sampler = Sampler()
        self._sampler.start()

    def end(self, steps: int) -> None:
        if self._sampler is not None:
            self._sampler.stop()

    def told(self, report: DepthReport) -> DepthReport:
        if self._sampler is None:
            return report
        workers = [
            (look.worker, look.samples)
            for look in self._loading.looks()
            if look.worker is not None and look.samples.stack
        ]
        unseen = [UNSEEN] if self._has_workers and not workers else []
        found = lines([(None, self._sampler.samples)]) + lines(workers)
        return replace(report, lines=found, problems=[*report.problems, *unseen])

    def _pass(self, args: tuple[Any, ...], iterator: Any, began: int) -> None:
        self._has_workers = self._has_workers or getattr(args[0], "num_workers", 0) > 0


def lines(seen: Iterable[tuple[int | None, Samples]]) -> list[SampledLine]:
    """The dearest first, of one process or of several that share what was seen."""
    spent: dict[tuple[int | None, Frame], int] = defaultdict(int)
    for worker, samples in seen:
        for stack, weight in zip(samples.stack, samples.weight_ns, strict=False):
            frames = [samples.frames[number] for number in samples.stacks[stack]]
            frame = users_line(frames) if worker is None else workers_line(frames)
            if frame is not None:
                spent[worker, frame] += weight
    whole = sum(spent.values()) or 1
    dearest = sorted(spent, key=lambda place: -spent[place])
    return [
        SampledLine(worker, frame, spent[worker, frame] / 1e9, spent[worker, frame] / whole)
        for worker, frame in dearest
    ]


def users_line(stack: list[Frame]) -> Frame | None:
    """The innermost of the user's own; where nothing of theirs runs, the innermost."""
    users = (frame for frame in reversed(stack) if frame.is_users)
    return next(users, stack[-1] if stack else None)


def workers_line(stack: list[Frame]) -> Frame | None:
    """The same, inside the worker's loop: the lines that it was forked from do not run.

    Where nothing of the user's runs, the line of that loop says what the worker waits for.
    """
    names = [frame.function for frame in stack]
    inside = stack[names.index(LOOP) :] if LOOP in names else stack
    if len(inside) == 1 and FETCH in inside[0].source:
        return None  # fetching is ours in this trial, and passes on to the dataset
    users = (frame for frame in reversed(inside) if frame.is_users)
    return next(users, inside[0] if inside else None)
