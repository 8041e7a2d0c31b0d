"""The optimisations hotloop can apply, as an explicit list: importing a file registers nothing."""

from __future__ import annotations

from hotloop.levers.base import Lever
from hotloop.levers.bf16 import Bf16
from hotloop.levers.channels_last import ChannelsLast
from hotloop.levers.compile import Compile
from hotloop.levers.fused_optimizer import FusedOptimizer
from hotloop.levers.loader_workers import LoaderWorkers
from hotloop.levers.pin_memory import PinMemory
from hotloop.levers.tf32 import Tf32

_ALL: tuple[type[Lever], ...] = (
    LoaderWorkers,
    PinMemory,
    Tf32,
    Bf16,
    ChannelsLast,
    Compile,
    FusedOptimizer,
)

LEVERS: dict[str, type[Lever]] = {lever.name: lever for lever in _ALL}
