"""A recorder of graphs that needs no GPU. Imports torch: tests import this late.

As a CUDA graph does, it keeps the operations and the memory that they work on, and runs no Python
of the job's when it replays them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map


def _place(value: Any) -> Any:
    """A tensor as a kernel knows it: the same memory, whatever becomes of the other."""
    return value.detach() if isinstance(value, torch.Tensor) else value


class _Log(TorchDispatchMode):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.done: list[tuple[Any, Any, Any, Any]] = []
        self.before: list[tuple[Any, Any]] = []

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        given = tree_map(_place, (args, kwargs or {}))
        if function._schema.is_mutable:
            tensors = [each for each in tree_leaves(given) if isinstance(each, torch.Tensor)]
            self.before += [(each, each.clone()) for each in tensors]
        made = function(*args, **(kwargs or {}))
        self.done.append((function, *given, tree_map(_place, made)))
        return made


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
        with _Log() as log:
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
