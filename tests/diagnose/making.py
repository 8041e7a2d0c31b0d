"""Makers of jobs on a CPU, as their trials would show them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hotloop.diagnose.base import Case
from hotloop.figures import figures, training_loader
from hotloop.inspection import Frame, Inspection, LoaderLook, OperatorLine, Operators, Samples
from hotloop.measurement import Measurement
from hotloop.roof import Roof
from tests.builders import Log, loader, measurement, training

TORCH_LOADER = "/lib/torch/utils/data/dataloader.py"
ROOF = Roof(
    launch_seconds=5e-6,
    cpu_matrix_flops={"float32": 100e9},
    cpu_matrix_flops_one_thread=50e9,
    cpu_memory_bandwidth=10e9,
    threads=2,
)


def users(line: int, function: str = "main", source: str = "", file: str = "train.py") -> Frame:
    """A line of the user's own."""
    return Frame(f"/job/{file}", line, function, is_users=True, source=source)


def library(file: str, function: str) -> Frame:
    return Frame(f"/lib/{file}", 1, function)


MAIN = users(10, source="for x, y in loader:")
NEXT = Frame(TORCH_LOADER, 1, "_BaseDataLoaderIter.__next__")


def samples(*seen: tuple[float, float, list[Frame]]) -> Samples:
    """(at which millisecond of the trial, for how many, the stack with the outermost first)."""
    made = Samples()
    for at, ms, stack in seen:
        numbers = [_number(made.frames, frame) for frame in stack]
        made.stack.append(_number(made.stacks, numbers))
        made.time_ns.append(round(at * 1e6))
        made.weight_ns.append(round(ms * 1e6))
    return made


def worker(*stacks: tuple[float, list[Frame]], **changes: Any) -> LoaderLook:
    """(for how many milliseconds, where it was inside the loader)."""
    loop = Frame("/lib/torch/utils/data/_utils/worker.py", 1, "_worker_loop")
    made = samples(*((0.0, ms, [MAIN, NEXT, loop, *stack]) for ms, stack in stacks))
    return replace(LoaderLook(worker=0, samples=made), **changes)


def operators(*lines: OperatorLine, steps: int = 1, **changes: Any) -> Operators:
    count = sum(line.operators + line.backward_operators for line in lines)
    return replace(Operators(steps=steps, count=count, lines=list(lines)), **changes)


def operator_line(place: Frame, count: int, elements: int = 16, **changes: Any) -> OperatorLine:
    made = OperatorLine(place, count, count * 1e-5, count, elements, count * 1e-5, count)
    return replace(made, **changes)


def case(
    log: Log | None = None,
    inspection: Inspection | None = None,
    looked: Log | None = None,
    cores: int = 2,
    roof: Roof | None = ROOF,
    **changes: Any,
) -> Case:
    """`looked`: what the other trial's events were; the same, unless told. The rest: inventory."""
    timed = _measured((log or training()).events, changes)
    found = figures(timed)
    assert found is not None
    return Case(
        measurement=timed,
        figures=found,
        loader=training_loader(timed),
        cores=cores,
        inspection=inspection,
        looked=None if inspection is None else _measured((looked or log or training()).events, {}),
        roof=roof,
    )


def with_loader(**changes: Any) -> dict[str, Any]:
    return {"loaders": [loader(**changes)]}


def hand_drawn(step: Any, steps: int = 20) -> Log:
    """Steps of a script without a loader."""
    log = Log()
    for _ in range(steps):
        step(log)
    return log


def _measured(events: Any, changes: dict[str, Any]) -> Measurement:
    made = measurement(events)
    return replace(made, inventory=replace(made.inventory, **changes))


def _number(known: list[Any], one: Any) -> int:
    if one not in known:
        known.append(one)
    return known.index(one)
