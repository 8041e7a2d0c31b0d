"""A recorder of graphs that needs no GPU. Imports torch: tests import this late.

As a CUDA graph does, it keeps the operations and the memory that they make, knows what else they
work on by its address alone, and runs no Python of the job when it replays them.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map


def _by_address(tensor: Any) -> Any:
    """As a kernel knows it that does not keep it alive."""
    storage = tensor.untyped_storage()
    if not storage.nbytes():
        return tensor.detach()
    raw = (ctypes.c_byte * storage.nbytes()).from_address(storage.data_ptr())
    place = torch.frombuffer(raw, dtype=torch.uint8).untyped_storage()
    empty = torch.empty(0, dtype=tensor.dtype)
    return empty.set_(place, tensor.storage_offset(), tensor.shape, tensor.stride())


class _Log(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.done: list[tuple[Any, Any, Any, Any]] = []
        self.before: list[tuple[Any, Any]] = []
        self._made: dict[int, Any] = {}
        """Memory that the operations have made."""

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        if function is torch.ops.aten.lift_fresh.default:  # a constant, which a graph holds itself
            self._made[_memory(args[0])] = args[0].detach()
        given = tree_map(self._place, (args, kwargs or {}))
        if function._schema.is_mutable:
            tensors = [each for each in tree_leaves(given) if isinstance(each, torch.Tensor)]
            self.before += [(each, each.clone()) for each in tensors]
        known = {_memory(each) for each in tree_leaves((args, kwargs)) if _is_tensor(each)}
        made = function(*args, **(kwargs or {}))
        new = [each for each in tree_leaves(made) if _is_tensor(each)]
        self._made |= {_memory(each): each.detach() for each in new if _memory(each) not in known}
        self.done.append((function, *given, tree_map(self._place, made)))
        return made

    def _place(self, value: Any) -> Any:
        """A tensor as a kernel knows it: the same memory, whatever becomes of the other."""
        if not _is_tensor(value):
            return value
        return value.detach() if _memory(value) in self._made else _by_address(value)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _memory(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)


@contextmanager
def capturable_on_cpu() -> Iterator[None]:
    """Optimizers without a fused kernel refuse to be captured there."""
    with ExitStack() as stack:
        for name in ("adadelta", "asgd", "rmsprop", "rprop"):
            module, asked = sys.modules[f"torch.optim.{name}"], "_get_capturable_supported_devices"
            stack.enter_context(mock.patch.object(module, asked, lambda **_: ["cpu"]))
        yield


@dataclass
class RecorderOnCpu:
    fails: str = ""
    is_free: bool = True
    recorded: int = 0

    def bears(self, tensor: Any) -> bool:
        return type(tensor) is torch.Tensor

    def record(self, work: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        if self.fails:
            raise RuntimeError(self.fails)
        self.recorded += 1
        with capturable_on_cpu(), torch.random.fork_rng(), _Log() as log:
            made = work()
        with torch.no_grad():  # what is recorded has not happened
            for place, value in reversed(log.before):
                place.copy_(value)

        @torch.no_grad()  # type: ignore[untyped-decorator]
        def replay() -> None:
            for function, args, kwargs, results in log.done:
                again = function(*args, **kwargs)
                if function._schema.is_mutable:
                    continue
                for place, value in zip(tree_leaves(results), tree_leaves(again), strict=True):
                    if isinstance(place, torch.Tensor) and place.data_ptr() != value.data_ptr():
                        place.copy_(value)

        return replay, made
