"""What a job's models and optimizers hold in memory: weights, gradients, the optimizers' state.

Read from what tensors say of themselves, at the end of a run: nothing waits for a device.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from hotloop.measurement import Memory


def with_holdings(
    torch: Any, used: Memory, models: Iterable[Any], optimizers: Iterable[Any]
) -> Memory:
    """On the device of the first parameter. What lies elsewhere does not fill that memory."""
    found = list(models)
    parameters = [one for model in found for one in model.parameters()]
    if not parameters:
        return used
    device = parameters[0].device
    buffers = [one for model in found for one in model.buffers()]
    gradients = [one.grad for one in parameters if one.grad is not None]
    state = [one for each in optimizers for one in state_tensors(torch, each)]
    return replace(
        used,
        weights=_bytes(torch, [*parameters, *buffers], device),
        gradients=_bytes(torch, gradients, device),
        optimizer=_bytes(torch, state, device),
    )


def state_tensors(torch: Any, optimizer: Any) -> list[Any]:
    return _tensors(torch, list(optimizer.state.values()))


def _bytes(torch: Any, tensors: list[Any], device: Any) -> int:
    """Where two lie in the same place, it is counted once. Sparse ones lie in several."""
    dense = [one for one in tensors if one.device == device and one.layout is torch.strided]
    storages = (one.untyped_storage() for one in dense)
    return sum({storage._cdata: storage.nbytes() for storage in storages}.values())


def _tensors(torch: Any, value: Any) -> list[Any]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        return [tensor for each in value for tensor in _tensors(torch, each)]
    return []
