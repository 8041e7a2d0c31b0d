"""A trial under profilers, from the inside: first some steps to warm up, then one turn after the
other, since each profiler would see, and slow down, the next.

A step is known to be over while its optimizer is still inside `step`. A profiler that was begun or
ended there would cut a function in two. So turns change with the first thing that happens next.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import get_ident
from time import monotonic
from typing import Any

from hotloop.depth import DepthReport
from hotloop.runtime.deep.allocations import SnapshotTurn
from hotloop.runtime.deep.functions import FunctionTurn
from hotloop.runtime.deep.growth import GrowthTurn
from hotloop.runtime.deep.lines import LineTurn
from hotloop.runtime.deep.operators import OperatorTurn
from hotloop.runtime.deep.tensors import TensorTurn
from hotloop.runtime.deep.trace import TraceTurn
from hotloop.runtime.deep.turn import Turn
from hotloop.runtime.patches import Patches
from hotloop.runtime.watching import Watch
from hotloop.trial.spec import Deep

TURNS: dict[str, tuple[type[Turn], ...]] = {
    # Lines last: however soon the script ends, those that were sampled by then are worth having.
    "python": (FunctionTurn, GrowthTurn, TensorTurn, LineTurn),
    "torch": (OperatorTurn,),
    "kernel": (TraceTurn, SnapshotTurn),
}


class Deepening:
    """Stands in for the stop rule."""

    give_up_above = None
    asked_from = 0

    def __init__(self, torch: Any, watch: Watch, deep: Deep) -> None:
        self.warm_up = deep.warm_up
        self._deep = deep
        self._patches = Patches()
        self._turns = [kind(torch, watch, deep, self._patches) for kind in TURNS[deep.kind]]
        self._waiting = list(self._turns)
        self._current: Turn | None = None
        self._since = 0, 0.0
        self._steps = 0
        self._thread = 0
        self._is_due = False
        self._done = False
        self._problems: list[str] = []
        self._seams = watch.seams

    def attach(self) -> None:
        seams = self._seams
        for seam in (seams.loader, seams.batch, seams.move, seams.zero_grad, seams.model):
            seam.before.append(self._resume)
        seams.backward.before.append(self._resume)
        for turn in self._turns:
            with self._noting(turn):
                turn.attach()

    def satisfied(self, steps: int, seconds: float) -> bool:
        """Asked after every step, and by each of several optimizers."""
        if steps != self._steps or not steps:
            self._steps = steps
            self._thread = get_ident()
            self._is_due = steps >= self.warm_up
        return self._done

    def report(self) -> DepthReport:
        """At the end of the process, however that came about."""
        self._resume((), {})
        if self._current is not None:
            self._end(self._current)
        for turn in self._waiting:
            if turn.applies():
                self._problems.append(
                    f"No {turn.what}: the training ended after {self._steps + 1} steps, too soon."
                )
        self._waiting.clear()
        self._patches.restore()
        report = DepthReport(self._deep.kind)
        for turn in self._turns:
            with self._noting(turn):
                report = turn.told(report)
        return replace(report, problems=[*report.problems, *self._problems])

    def _resume(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._is_due and get_ident() == self._thread:
            self._is_due = False
            self._advance()

    def _advance(self) -> None:
        """One step more has been made."""
        if self._current is not None:
            with self._noting(self._current):
                self._current.stepped()
            if not self._is_over(self._current):
                return
            self._end(self._current)
        self._done = not self._begin_next()

    def _is_over(self, turn: Turn) -> bool:
        made, took = self._steps - self._since[0], monotonic() - self._since[1]
        enough = made >= turn.steps and took >= turn.seconds
        return enough or took >= self._deep.most_seconds

    def _begin_next(self) -> bool:
        """False when there is none left."""
        while self._waiting:
            turn = self._waiting.pop(0)
            with self._noting(turn):
                if turn.applies():
                    turn.begin()
                    self._current = turn
                    self._since = self._steps, monotonic()
                    return True
        return False

    def _end(self, turn: Turn) -> None:
        self._current = None
        with self._noting(turn):
            turn.end(self._steps - self._since[0])

    @contextmanager
    def _noting(self, turn: Turn) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            said = " ".join(str(error).split())[:300]
            self._problems.append(f"No {turn.what}: {type(error).__name__}: {said}")
