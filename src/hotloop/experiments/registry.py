"""The experiments there are, as an explicit list."""

from __future__ import annotations

from hotloop.experiments.accumulation import Accumulation
from hotloop.experiments.attention import Attention
from hotloop.experiments.base import Experiment
from hotloop.experiments.best import Best
from hotloop.experiments.checkpointing import Checkpointing
from hotloop.experiments.compile import Compile
from hotloop.experiments.flops import Flops
from hotloop.experiments.fusion import Fusion
from hotloop.experiments.ladder import Ladder
from hotloop.experiments.loader import Loader
from hotloop.experiments.precision import Precision
from hotloop.experiments.scaling import Scaling
from hotloop.experiments.techniques import Techniques

_ALL: tuple[type[Experiment], ...] = (
    Fusion,
    Techniques,
    Precision,
    Scaling,
    Accumulation,
    Flops,
    Best,
    Loader,
    Compile,
    Attention,
    Checkpointing,
    Ladder,
)

EXPERIMENTS: dict[str, type[Experiment]] = {one.name: one for one in _ALL}
