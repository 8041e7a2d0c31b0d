"""What torch.compile says of itself, if the job uses it."""

from __future__ import annotations

import sys
from typing import Any

from hotloop.inspection import Compilation
from hotloop.runtime.look.frames import Frames


def compiled_so_far() -> int:
    return len(_metrics())


def compilations(known: int) -> list[Compilation]:
    """Those after the first `known`. Of a function that is not the user's own no file is told."""
    is_users = Frames().is_users
    return [
        Compilation(
            function=metric.co_name or "",
            file=metric.co_filename if is_users(metric.co_filename or "<unknown>") else "",
            line=metric.co_firstlineno or 0,
            seconds=(metric.duration_us or 0) / 1e6,
            reason=str(getattr(metric, "recompile_reason", None) or ""),
        )
        for metric in _metrics()[known:]
    ]


def graph_breaks() -> dict[str, int]:
    utils = sys.modules.get("torch._dynamo.utils")
    counted = utils.counters.get("graph_break", {}) if utils else {}
    return {str(reason)[:300]: int(count) for reason, count in counted.items()}


def _metrics() -> list[Any]:
    utils = sys.modules.get("torch._dynamo.utils")
    return list(utils.get_compilation_metrics()) if utils else []
