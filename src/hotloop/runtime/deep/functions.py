"""Every function that the training thread calls during some steps, by Python's own profiler."""

from __future__ import annotations

import marshal
import os
import sys
import threading
from cProfile import Profile  # before the script starts, which may have a profile.py of its own
from dataclasses import replace
from time import perf_counter
from typing import Any

from hotloop.depth import DepthReport, FunctionRow, FunctionTable
from hotloop.runtime.deep.turn import Turn
from hotloop.runtime.look.frames import Frames
from hotloop.runtime.tracebacks import OURS

FILE = "python.pstats"
MIXED = (
    "The function table counts other threads too: since Python 3.12 its profiler sees all of them."
)

Function = tuple[str, int, str]
Times = tuple[int, int, float, float]
"""Primitive calls, calls, own and cumulative seconds: the order that pstats has them in."""
Stats = dict[Function, tuple[int, int, float, float, dict[Function, Times]]]
"""What a file of pstats holds: the times, and the same by who called."""


class FunctionTurn(Turn):
    what = "function table"
    _profiler: Any = None
    _is_on = False
    _others = 0
    _table: FunctionTable | None = None

    def begin(self) -> None:
        self._profiler = Profile()
        self._others = threading.active_count() - 1
        os.register_at_fork(after_in_child=self._disable)
        self._began = perf_counter()
        self._is_on = True
        self._profiler.enable()

    def end(self, steps: int) -> None:
        self._disable()
        seconds = perf_counter() - self._began
        self._profiler.create_stats()
        stats = without_ours(self._profiler.stats)
        with (self._folder / FILE).open("wb") as file:
            marshal.dump(stats, file)
        self._table = FunctionTable(steps, seconds, rows(stats, Frames()))

    def _disable(self) -> None:
        """Also in a worker that was forked meanwhile; one forked later may have its own."""
        if self._is_on:
            self._profiler.disable()
        self._is_on = False

    def told(self, report: DepthReport) -> DepthReport:
        if self._table is None:
            return report
        mixed = [MIXED] if self._others and sys.version_info >= (3, 12) else []
        return replace(
            report,
            functions=self._table,
            files=[*report.files, FILE],
            problems=[*report.problems, *mixed],
        )


def rows(stats: Stats, frames: Frames) -> list[FunctionRow]:
    made = [
        FunctionRow(
            file,
            line,
            name,
            calls,
            primitive,
            own,
            cumulative,
            file != "~" and frames.is_users(file),
        )
        for (file, line, name), (primitive, calls, own, cumulative, _) in stats.items()
    ]
    return sorted(made, key=lambda row: -row.own)


def without_ours(stats: Stats) -> Stats:
    """Without our probes and wrappers, and without what those called for themselves.

    Built-in functions are called by both. A tensor's methods are the script's, passed on by us.
    """
    kept: Stats = {}
    for function, (primitive, calls, own, cumulative, callers) in stats.items():
        if is_ours(function):
            continue
        times: Times = primitive, calls, own, cumulative
        for caller, part in callers.items():
            if is_ours(caller) and function[0] == "~" and "TensorBase" not in function[2]:
                times = _sum(times, part, -1)
        by = {caller: part for caller, part in callers.items() if not is_ours(caller)}
        if times[1] > 0:
            kept[function] = (*times, by)
    return kept


def is_ours(function: Function) -> bool:
    return function[0].startswith(OURS) or "_lsprof.Profiler" in function[2]


def _sum(one: Times, other: Times, sign: int = 1) -> Times:
    return (
        one[0] + sign * other[0],
        one[1] + sign * other[1],
        max(one[2] + sign * other[2], 0.0),
        max(one[3] + sign * other[3], 0.0),
    )
