from __future__ import annotations

from time import perf_counter_ns, time_ns
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.measurement import Spans
from hotloop.runtime.probes import compile_times


def test_compiling_is_timed_by_torch_itself(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    utils = pytest.importorskip("torch._dynamo.utils")
    monkeypatch.setattr(utils, "compilation_time_metrics", {})
    assert compile_times.seconds() is None
    metrics = {"_compile.compile_inner": [1.5, 0.25], "other": [9.0]}
    monkeypatch.setattr(utils, "compilation_time_metrics", metrics)
    assert compile_times.seconds() == 1.75


def test_when_it_was_is_told_on_the_clock_of_the_events(
    torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    utils = pytest.importorskip("torch._dynamo.utils")
    now, day = perf_counter_ns(), time_ns()
    kept = [
        SimpleNamespace(start_time_us=day // 1000 + 5, duration_us=20),
        SimpleNamespace(start_time_us=day // 1000, duration_us=2),
        SimpleNamespace(start_time_us=None, duration_us=None),  # one that failed
    ]
    monkeypatch.setattr(utils, "get_compilation_metrics", lambda: kept)
    found = compile_times.spans()
    assert [end - begin for begin, end in zip(found.begin_ns, found.end_ns, strict=True)] == [
        2_000,
        20_000,
    ]
    assert found.begin_ns[0] == pytest.approx(now, abs=50e6)  # as exactly as clocks agree
    monkeypatch.delattr(utils, "get_compilation_metrics")
    assert compile_times.spans() == Spans()


def test_torch_says_when_it_compiled(torch: Any) -> None:
    """Its names for it are no promise: this is where a change of them would show."""
    utils = pytest.importorskip("torch._dynamo.utils")
    utils.clear_compilation_metrics()
    began = perf_counter_ns()
    torch.compile(lambda x: x.sin() + 1, backend="eager")(torch.ones(3))
    found = compile_times.spans()
    assert len(found.begin_ns) == 1
    assert began - 50e6 < found.begin_ns[0] < found.end_ns[0] < perf_counter_ns() + 50e6
