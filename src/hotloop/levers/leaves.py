"""Which tensors gather gradients, and which optimizer steps by them.

An optimizer's parameters do; and so does all else that the script wants a gradient of: an input, a
result whose gradient it asks to keep, a parameter that no optimizer knows.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Gathered:
    """Gradients that there are now."""

    optimizer: Any
    """None: of tensors that no optimizer knows."""
    own: list[Any]
    shared: list[Any]
    """Which belong to another optimizer as well, and are among its own."""


class Leaves:
    def __init__(self) -> None:
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._others: dict[int, weakref.ref[Any]] = {}

    @property
    def has_optimizers(self) -> bool:
        return len(self._optimizers) > 0

    def note_optimizer(self, optimizer: Any) -> None:
        self._optimizers.add(optimizer)

    def note(self, tensor: Any) -> None:
        self._others[id(tensor)] = weakref.ref(tensor)

    def gathered(self) -> list[Gathered]:
        """Each gradient once among `own`, whoever it belongs to."""
        seen: set[int] = set()
        found = [Gathered(one, *_parted(_parameters(one), seen)) for one in self._optimizers]
        return [*found, Gathered(None, *_parted(self._living(), seen))]

    def gradients(self) -> list[Any]:
        return [gradient for one in self.gathered() for gradient in one.own]

    def have_hooks(self) -> bool:
        """Of the script's own, that see gradients while they are still scaled."""
        tensors = [tensor for one in self._optimizers for tensor in _parameters(one)]
        return any(
            _are_the_scripts(tensor._backward_hooks)
            or _are_the_scripts(tensor._post_accumulate_grad_hooks)
            for tensor in (*tensors, *self._living())
        )

    def _living(self) -> Iterator[Any]:
        for place, known in list(self._others.items()):
            tensor = known()
            if tensor is None:
                del self._others[place]
            else:
                yield tensor


def _are_the_scripts(hooks: Any) -> bool:
    """Not ours, which look at what memory holds and not at numbers."""
    names = [str(getattr(hook, "__module__", "")) for hook in (hooks or {}).values()]
    return any(not name.startswith("hotloop.") for name in names)


def _parameters(optimizer: Any) -> Iterator[Any]:
    """None of an optimizer that is still being built."""
    for group in getattr(optimizer, "param_groups", ()):
        yield from group["params"]


def _parted(tensors: Iterator[Any], seen: set[int]) -> tuple[list[Any], list[Any]]:
    """Gradients not seen before, and those seen."""
    own: list[Any] = []
    shared: list[Any] = []
    for tensor in tensors:
        gradient = tensor.grad
        if gradient is not None:
            (shared if id(gradient) in seen else own).append(gradient)
            seen.add(id(gradient))
    return own, shared
