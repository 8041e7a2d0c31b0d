"""Everything that watches a job, put together."""

from __future__ import annotations

from types import ModuleType

from hotloop.runtime.probes.clock import Clock
from hotloop.runtime.probes.gpu_clock import GpuClock
from hotloop.runtime.probes.inventory import InventoryProbe
from hotloop.runtime.probes.loss import LossProbe
from hotloop.runtime.script import ScriptDriver
from hotloop.seams import Seams


class Watch:
    """The order in which probes attach is the order in which they hear of an event."""

    def __init__(self, torch: ModuleType) -> None:
        self.seams = Seams()
        self.inventory = InventoryProbe(torch)
        self.clock = Clock(torch, self.inventory.numbers)
        self.loss = LossProbe(torch)
        self.inventory.attach(self.seams)
        self.loss.attach(self.seams)
        self.clock.attach(self.seams)
        self.gpu_clock = GpuClock(torch.cuda)
        if torch.version.cuda or torch.version.hip:
            self.gpu_clock.attach(self.seams)
        self.driver = ScriptDriver(torch, self.seams)
