"""Every operator of a few steps, and the module it ran in, by torch's profiler."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hotloop.depth import DepthReport, OperatorTable
from hotloop.runtime.deep.modules import ModuleRanges
from hotloop.runtime.deep.tallies import Tally, ran_kernels
from hotloop.runtime.deep.turn import Turn

NO_COUNTERS = "No times on the GPU: its counters (CUPTI) cannot be read here."


class OperatorTurn(Turn):
    what = "operator table"
    _profiler: Any = None
    _table: OperatorTable | None = None
    _blind = False

    @property
    def steps(self) -> int:
        """One more than is kept: starting the profiler disturbs."""
        return 1 + self._deep.steps

    def begin(self) -> None:
        self._modules = ModuleRanges(self._torch, self._watch)
        self._modules.begin()
        self._profiler = profiler(self._torch, self._deep.steps, record_shapes=True)
        self._profiler.start()

    def stepped(self) -> None:
        self._profiler.step()

    def end(self, steps: int) -> None:
        self._modules.end()
        self._profiler.stop()
        if steps < 2:
            raise RuntimeError(f"the training ended {steps} steps after profiling began, too soon")
        events = self._profiler.events()
        seen = ran_kernels(events)
        self._blind = uses_gpu(self._torch) and not seen
        tally = Tally(see_gpu=seen)
        tally.add(events)
        self._table = OperatorTable(steps - 1, tally.operators(), tally.modules())

    def told(self, report: DepthReport) -> DepthReport:
        blind = [NO_COUNTERS] if self._blind else []
        return replace(report, operators=self._table, problems=[*report.problems, *blind])


def profiler(torch: Any, steps: int, **more: Any) -> Any:
    """Asked to `step` after each, it warms up for one and records the others."""
    kinds = torch.profiler.ProfilerActivity
    return torch.profiler.profile(
        activities=[kinds.CPU, *([kinds.CUDA] if uses_gpu(torch) else [])],
        schedule=torch.profiler.schedule(wait=0, warmup=1, active=steps, repeat=1),
        **more,
    )


def uses_gpu(torch: Any) -> bool:
    return bool(torch.cuda.is_initialized())
