"""A trial under profilers, from the inside: first some steps to warm up, then one turn after the
other, since each profiler would see, and slow down, the next."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from hotloop.depth import DepthReport
from hotloop.runtime.deep.allocations import SnapshotTurn
from hotloop.runtime.deep.functions import FunctionTurn
from hotloop.runtime.deep.growth import GrowthTurn
from hotloop.runtime.deep.lines import LineTurn
from hotloop.runtime.deep.operators import OperatorTurn
from hotloop.runtime.deep.trace import TraceTurn
from hotloop.runtime.deep.turn import Turn
from hotloop.runtime.patches import Patches
from hotloop.runtime.watching import Watch
from hotloop.trial.spec import Deep

TURNS: dict[str, tuple[type[Turn], ...]] = {
    # Lines last: however soon the script ends, those that were sampled by then are worth having.
    "python": (FunctionTurn, GrowthTurn, LineTurn),
    "torch": (OperatorTurn,),
    "kernel": (TraceTurn, SnapshotTurn),
}


class Deepening:
    """Stands in for the stop rule: asked after every step, it goes from one turn to the next."""

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
        self._problems: list[str] = []

    def attach(self) -> None:
        for turn in self._turns:
            with self._noting(turn):
                turn.attach()

    def satisfied(self, steps: int, seconds: float) -> bool:
        if steps == self._steps and steps:
            return False  # another optimizer's step, inside the same step of the job
        self._steps = steps
        if steps < self.warm_up:
            return False
        if self._current is not None:
            with self._noting(self._current):
                self._current.stepped()
            if not self._is_over(self._current, steps, seconds):
                return False
            self._end(self._current, steps)
        return not self._begin_next(steps, seconds)

    def report(self) -> DepthReport:
        """At the end of the process, however that came about."""
        if self._current is not None:
            self._end(self._current, self._steps)
        for turn in self._waiting:
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

    def _is_over(self, turn: Turn, steps: int, seconds: float) -> bool:
        made, took = steps - self._since[0], seconds - self._since[1]
        enough = made >= turn.steps and took >= turn.seconds
        return enough or took >= self._deep.most_seconds

    def _begin_next(self, steps: int, seconds: float) -> bool:
        """False when there is none left."""
        while self._waiting:
            turn = self._waiting.pop(0)
            with self._noting(turn):
                if turn.applies():
                    turn.begin()
                    self._current = turn
                    self._since = steps, seconds
                    return True
        return False

    def _end(self, turn: Turn, steps: int) -> None:
        self._current = None
        with self._noting(turn):
            turn.end(steps - self._since[0])

    @contextmanager
    def _noting(self, turn: Turn) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            said = " ".join(str(error).split())[:300]
            self._problems.append(f"No {turn.what}: {type(error).__name__}: {said}")
