"""Everything that happened in a few steps, in order of time, for Perfetto and TensorBoard."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import time
from dataclasses import replace
from typing import Any

from hotloop.depth import DepthReport, MemoryTimeline
from hotloop.runtime.deep.allocations import timelines
from hotloop.runtime.deep.modules import ModuleRanges
from hotloop.runtime.deep.operators import NO_COUNTERS, profiler, uses_gpu
from hotloop.runtime.deep.phases import PhaseRanges
from hotloop.runtime.deep.turn import Turn

TRACE = "trace.json.gz"
LOGS = "tensorboard"


class TraceTurn(Turn):
    what = "trace"
    _profiler: Any = None
    _steps = 0
    _memory: tuple[MemoryTimeline, ...] = ()
    _blind = False

    @property
    def steps(self) -> int:
        return 1 + self._deep.steps

    def attach(self) -> None:
        """From the beginning: whoever runs all of this under Nsight sees the phases of any step."""
        self._phases = PhaseRanges(self._torch)
        self._phases.attach(self._watch.seams)

    def begin(self) -> None:
        self._phases.close()
        self._modules = ModuleRanges(self._torch, self._watch)
        self._modules.begin()
        self._profiler = profiler(
            self._torch, self._deep.steps, record_shapes=True, profile_memory=True
        )
        self._profiler.start()

    def stepped(self) -> None:
        self._phases.close()
        self._profiler.step()

    def end(self, steps: int) -> None:
        self._modules.end()
        self._profiler.stop()
        if steps < 2:
            raise RuntimeError(f"the training ended {steps} steps after tracing began, too soon")
        # As torch.profiler.tensorboard_trace_handler names it; a trace can be saved only once.
        name = f"{os.uname().nodename}_{os.getpid()}.{time.time_ns()}.pt.trace.json"
        logs = self._folder / LOGS
        logs.mkdir(exist_ok=True)
        self._profiler.export_chrome_trace(str(logs / name))
        with (logs / name).open("rb") as whole, gzip.open(self._folder / TRACE, "wb", 6) as packed:
            shutil.copyfileobj(whole, packed)
        self._steps = steps - 1
        events = json.loads((logs / name).read_text(encoding="utf-8"))["traceEvents"]
        self._memory = timelines(events)
        kernels = any(event.get("cat") == "kernel" for event in events)
        self._blind = uses_gpu(self._torch) and not kernels

    def told(self, report: DepthReport) -> DepthReport:
        if not self._steps:
            return report
        blind = [NO_COUNTERS] if self._blind else []
        return replace(
            report,
            traced_steps=self._steps,
            memory=list(self._memory),
            files=[*report.files, TRACE, LOGS],
            problems=[*report.problems, *blind],
        )
