from __future__ import annotations

from typing import Any

from hotloop.depth import DepthReport, MemoryTimeline
from hotloop.measurement import Inventory, Memory
from hotloop.report.memory_rows import Held, courses, rows
from hotloop.report.sides import Side
from tests.builders import measurement, model, optimizer, trial
from tests.report.studies import searched


def held(memory: Memory, **inventory: Any) -> Held | None:
    seen = Inventory(**{"models": [model()], "optimizers": [optimizer()], **inventory})
    made = trial(measurement=measurement(memory=memory, inventory=seen))
    found = rows([Side("as it is", made)])
    return found[0] if found else None


def sizes(found: Held | None) -> list[int | None]:
    assert found is not None
    return [kind.bytes for kind in found.kinds]


def test_kinds_add_up_to_the_peak() -> None:
    weights = 12_345 * 4
    found = held(Memory(device_peak_allocated=2**20, device_total=2**30))
    assert found is not None and found.where == "GPU"
    assert sizes(found)[:3] == [weights, weights, 2 * weights]
    assert sum(size or 0 for size in sizes(found)) == 2**20


def test_what_is_not_known_is_not_zero() -> None:
    mixed = held(Memory(host_peak=2**20), models=[model(dtypes=["float32", "bfloat16"])])
    assert sizes(mixed)[:3] == [None, None, None]
    sgd = held(Memory(host_peak=2**20), optimizers=[optimizer(name="SGD")])
    assert sizes(sgd)[2] is None and sizes(sgd)[0] is not None
    assert sgd is not None and "with what is unknown" in sgd.kinds[-1].name
    assert sizes(held(Memory(host_peak=2**20), models=[]))[0] is None


def test_child_processes_are_in_the_peak_of_a_host() -> None:
    found = held(Memory(host_peak=2**20, children_peak=2**20))
    assert found is not None and found.peak == 2**21
    assert sum(size or 0 for size in sizes(found)) == 2**21
    assert "child processes" in found.kinds[-1].name
    alone = held(Memory(host_peak=2**20, children_peak=0))
    assert alone is not None and "child processes" not in alone.kinds[-1].name


def test_what_was_read_is_not_guessed() -> None:
    read = Memory(device_peak_allocated=1000, weights=100, gradients=90, optimizer=0)
    assert sizes(held(read, models=[], optimizers=[optimizer(name="SGD")])) == [100, 90, 0, 810]


def test_more_counted_than_held_leaves_the_rest_unknown() -> None:
    assert sizes(held(Memory(host_peak=1000)))[-1] is None


def test_an_unknown_peak_is_not_shown() -> None:
    assert held(Memory()) is None


def test_memory_over_time_needs_a_profiler() -> None:
    line = MemoryTimeline("cuda:0", [0.0, 0.1, 0.2], [1, 5, 2])
    deep = trial(deep=DepthReport(kind="kernel", memory=[line]))
    (course,) = courses(searched(None, deep))
    assert course.points == ((0.0, 1), (0.1, 5), (0.2, 2))
    assert courses(searched(None, trial())) == ()


def test_a_long_course_keeps_its_peak() -> None:
    sizes = [number % 97 for number in range(20_000)]
    sizes[12_345] = 10**9
    line = MemoryTimeline("cuda:0", [float(at) for at in range(20_000)], sizes)
    (course,) = courses(searched(None, trial(deep=DepthReport(kind="kernel", memory=[line]))))
    assert len(course.points) <= 400
    assert max(size for _, size in course.points) == 10**9
