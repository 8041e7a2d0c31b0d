"""What torch's allocators hand out: over time, and on a GPU with the stack that asked for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hotloop.depth import DepthReport, MemoryTimeline
from hotloop.runtime.deep.turn import Turn

SNAPSHOT = "memory.pickle"
MOST_ENTRIES = 200_000
HOST = 0
"""The number of the host among torch's kinds of devices."""


class SnapshotTurn(Turn):
    """A turn of its own: noting a stack with every allocation would stretch the trace."""

    what = "memory snapshot"
    _is_there = False

    def applies(self) -> bool:
        return bool(self._torch.cuda.is_initialized())

    def begin(self) -> None:
        self._torch.cuda.memory._record_memory_history(max_entries=MOST_ENTRIES)

    def end(self, steps: int) -> None:
        memory = self._torch.cuda.memory
        try:
            memory._dump_snapshot(str(self._folder / SNAPSHOT))
            self._is_there = True
        finally:
            memory._record_memory_history(enabled=None)

    def told(self, report: DepthReport) -> DepthReport:
        return replace(report, files=[*report.files, SNAPSHOT]) if self._is_there else report


def timelines(events: list[dict[str, Any]]) -> tuple[MemoryTimeline, ...]:
    """One a device, from a trace in which every allocation was noted."""
    first = min((event["ts"] for event in events if event.get("ph") == "X"), default=0.0)
    found: dict[tuple[int, int], MemoryTimeline] = {}
    noted = [event for event in events if event.get("name") == "[memory]"]
    for event in sorted(noted, key=lambda event: float(event["ts"])):
        told = event["args"]
        kind, number = told.get("Device Type", HOST), told.get("Device Id", 0)
        name = "host" if kind == HOST else f"GPU {number}"
        timeline = found.setdefault((kind, number), MemoryTimeline(name))
        timeline.seconds.append((event["ts"] - first) / 1e6)
        timeline.allocated.append(told.get("Total Allocated", 0))
    return tuple(found[device] for device in sorted(found))
