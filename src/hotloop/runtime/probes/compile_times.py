"""When torch compiled, by its own account, read when the measuring is over."""

from __future__ import annotations

import sys
from time import perf_counter_ns, time_ns
from typing import Any

from hotloop.measurement import Spans


def spans() -> Spans:
    """On the clock of the events. torch keeps the last few dozen, by the time of day."""
    utils = sys.modules.get("torch._dynamo.utils")
    read = getattr(utils, "get_compilation_metrics", None) if utils else None
    ahead = time_ns() - perf_counter_ns()
    found = [_span(one) for one in read()] if read else []
    known = sorted(one for one in found if one is not None)
    return Spans([begin - ahead for begin, _ in known], [end - ahead for _, end in known])


def _span(metrics: Any) -> tuple[int, int] | None:
    begin = getattr(metrics, "start_time_us", None)
    took = getattr(metrics, "duration_us", None)
    if begin is None or took is None:
        return None
    return int(begin) * 1000, int(begin + took) * 1000


def seconds() -> float | None:
    """All of it, if the job compiled anything."""
    utils = sys.modules.get("torch._dynamo.utils")
    metrics = getattr(utils, "compilation_time_metrics", None) if utils else None
    if not metrics:
        return None
    return float(sum(metrics.get("_compile.compile_inner", [])))
