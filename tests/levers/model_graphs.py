"""The model's passes as graphs where there is no GPU: another recorder stands in for CUDA's."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hotloop.levers.model_graph import ModelGraph
from hotloop.levers.replaying import Tally


@dataclass
class ModelGraphOnCpu(ModelGraph):
    fails: str = ""

    def recorder(self, weight: Any) -> Any:
        from tests.levers.recorder import RecorderOnCpu

        return RecorderOnCpu(self.fails)


def tallies(lever: ModelGraph) -> list[Tally]:
    """Of each pass: forward and backward."""
    return [tally for backend in lever._backends for tally in backend.tallies]


def recorded(lever: ModelGraph) -> list[int]:
    return [tally.recorded for tally in tallies(lever)]


def plain_network(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


def trained_alike(
    torch: Any, jobs: Any, make: Callable[[], Any], step: Callable[..., Any], count: int = 10
) -> ModelGraphOnCpu:
    """Under the lever and without it: all that `step` hands back, and all weights."""

    def trained(model: Any) -> list[Any]:
        torch.manual_seed(1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        told = [step(model, optimizer) for _ in range(count)]
        return [*told, [p.detach().clone() for p in model.parameters()]]

    torch.manual_seed(0)
    plain = make()
    planned = copy.deepcopy(plain)
    expected = trained(plain)
    lever = ModelGraphOnCpu()
    with jobs.under(lever):
        found = trained(planned)
    torch.testing.assert_close(
        [each for each in found if each is not None],
        [each for each in expected if each is not None],
    )
    return lever
