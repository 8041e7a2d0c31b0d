"""What a trial under a profiler has to say, as plain rows."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from hotloop import units
from hotloop.depth import (
    DepthReport,
    FunctionRow,
    FunctionTable,
    MemoryGrowth,
    MemoryTimeline,
    ModuleRow,
    OperatorRow,
    OperatorTable,
    SampledLine,
)
from hotloop.inspection import PACKAGES, Frame

MOST = 20
"""Rows of a table on screen. The whole of it is in a file."""
FEW = 8

OPENED_BY = {
    "python.pstats": "python -m pstats {path}",
    "trace.json.gz": "{path}: open it at https://ui.perfetto.dev",
    "tensorboard": "tensorboard --logdir {path} (with torch-tb-profiler)",
    "memory.pickle": "{path}: open it at https://pytorch.org/memory_viz",
}


@dataclass(frozen=True)
class Table:
    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1
    """How many columns at the end are text rather than numbers."""


@dataclass(frozen=True)
class DepthRows:
    tables: tuple[Table, ...]
    facts: tuple[tuple[str, str], ...]
    """Label and text."""
    files: tuple[str, ...]
    """How each is opened."""
    problems: tuple[str, ...]


def rows(report: DepthReport, folder: Path, home: str) -> DepthRows:
    """`folder`: the trial's own. `home`: where the user is, whose files need no long names."""
    tables = [
        *_functions(report.functions, home),
        *_lines(report.lines, home),
        *_growth(report.growth, "grows in Python", "blocks", home),
        *_growth(report.tensor_growth, "grows in tensors", "tensors", home),
        *_operators(report.operators),
        *_modules(report.operators),
    ]
    return DepthRows(
        tables=tuple(tables),
        facts=tuple(_facts(report)),
        files=tuple(opened(folder / name) for name in report.files),
        problems=tuple(report.problems),
    )


def opened(path: Path) -> str:
    try:
        short = str(path.relative_to(os.getcwd()))
    except ValueError:
        short = str(path)
    return OPENED_BY.get(path.name, "{path}").format(path=shlex.quote(short))


def where(file: str, line: int, home: str) -> str:
    """A file under the user's folder by its path from there, others from their package on."""
    path = os.path.normpath(os.path.join(home, file))
    if path.startswith(os.path.join(home, "")):
        return f"{os.path.relpath(path, home)}:{line}"
    for mark in PACKAGES:
        _, found, rest = path.rpartition(os.sep + mark + os.sep)
        if found:
            return f"{rest}:{line}"
    return f"{os.path.join(*Path(path).parts[-2:])}:{line}"


def _functions(table: FunctionTable | None, home: str) -> list[Table]:
    if table is None:
        return []
    return [
        Table(
            f"functions, {table.steps} steps in {units.seconds(table.seconds)} under the profiler",
            ("own", "cumulative", "calls", "function"),
            tuple(_function(row, home) for row in table.rows[:MOST]),
        )
    ]


def _function(row: FunctionRow, home: str) -> tuple[str, ...]:
    name = row.name if row.file == "~" else f"{row.name}  {where(row.file, row.line, home)}"
    calls = units.count(row.calls)
    if row.primitive_calls != row.calls:
        calls += f"/{units.count(row.primitive_calls)}"
    return units.seconds(row.own), units.seconds(row.cumulative), calls, name


def _lines(lines: list[SampledLine], home: str) -> list[Table]:
    own = [line for line in lines if line.worker is None]
    workers = [line for line in lines if line.worker is not None]
    tables = []
    if own:
        found = tuple(_line(line, home) for line in own[:MOST])
        tables.append(Table("lines of the training process", ("share", "seen", "line"), found))
    if workers:
        found = tuple(
            (str(line.worker), *_line(line, home)) for line in workers[: max(FEW, MOST // 2)]
        )
        head = ("worker", "share", "seen", "line")
        tables.append(Table("lines of the loader's workers", head, found))
    return tables


def _line(line: SampledLine, home: str) -> tuple[str, ...]:
    return units.percent(line.share), units.seconds(line.seconds), place(line.place, home)


def place(frame: Frame, home: str) -> str:
    at = where(frame.file, frame.line, home)
    return f"{at}  {frame.source}" if frame.source else at


def _growth(growth: MemoryGrowth | None, title: str, what: str, home: str) -> list[Table]:
    if growth is None or not growth.lines:
        return []
    found = tuple(
        (units.size(line.bytes), units.count(line.count), place(line.place, home))
        for line in growth.lines[:FEW]
    )
    return [
        Table(f"memory that {title}, over {growth.steps} steps", ("bytes", what, "line"), found)
    ]


def _operators(table: OperatorTable | None) -> list[Table]:
    if table is None:
        return []
    on_gpu = any(row.gpu_own is not None for row in table.operators)
    gpu = ("GPU own", "GPU total") if on_gpu else ()
    return [
        Table(
            f"operators, a step ({table.steps} were profiled)",
            (*gpu, "CPU own", "CPU total", "calls", "operator", "shapes"),
            tuple(_operator(row, table.steps, on_gpu) for row in table.operators[:MOST]),
            left=2,
        )
    ]


def _operator(row: OperatorRow, steps: int, on_gpu: bool) -> tuple[str, ...]:
    gpu = (_a_step(row.gpu_own, steps), _a_step(row.gpu_total, steps)) if on_gpu else ()
    cpu = _a_step(row.cpu_own, steps), _a_step(row.cpu_total, steps)
    return (*gpu, *cpu, f"{row.calls / steps:,.4g}", row.name, row.shapes)


def _modules(table: OperatorTable | None) -> list[Table]:
    if table is None or not table.modules:
        return []
    on_gpu = any(row.own_gpu is not None for row in table.modules)
    dearest = sorted(table.modules, key=lambda row: -(_own(row)))[:MOST]
    shown = [row for row in table.modules if row in dearest]
    device = "GPU" if on_gpu else "CPU"
    return [
        Table(
            f"modules, {device} time of a step, the dearest in the order they are called",
            ("own", "forward", "backward", "calls", "module", "class"),
            tuple(_module(row, table.steps, on_gpu) for row in shown),
            left=2,
        )
    ]


def _own(row: ModuleRow) -> float:
    return row.own_cpu if row.own_gpu is None else row.own_gpu


def _module(row: ModuleRow, steps: int, on_gpu: bool) -> tuple[str, ...]:
    forward, backward = (
        (row.forward_gpu, row.backward_gpu) if on_gpu else (row.forward_cpu, row.backward_cpu)
    )
    times = tuple(_a_step(seconds, steps) for seconds in (_own(row), forward, backward))
    return (*times, f"{row.calls / steps:,.4g}", row.path, row.kind)


def _a_step(seconds: float | None, steps: int) -> str:
    return "unknown" if seconds is None else units.seconds(seconds / max(steps, 1))


def _facts(report: DepthReport) -> list[tuple[str, str]]:
    facts = []
    if report.traced_steps:
        steps = f"{report.traced_steps} steps"
        facts.append(("traced", f"{steps}, with their phases and the modules as named ranges"))
    facts += [("memory", _timeline(timeline)) for timeline in report.memory]
    for growth, what in ((report.growth, "Python objects"), (report.tensor_growth, "tensors")):
        if growth is not None and not growth.lines:
            facts.append(("growth", f"none of {what} over {growth.steps} steps"))
    return facts


def _timeline(timeline: MemoryTimeline) -> str:
    at = timeline.seconds[timeline.allocated.index(timeline.peak)] if timeline.seconds else 0.0
    since = ", counted from where the trace begins" if timeline.device == "host" else ""
    return (
        f"{timeline.device} up to {units.size(timeline.peak)}"
        f" {units.seconds(at)} into the trace{since}"
    )
