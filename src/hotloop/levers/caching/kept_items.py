"""Items of a dataset, packed for the way between two processes, kept, and handed out as copies.

Tensors and arrays lie in a few large buffers, apart from the Python objects that point at them:
workers forked off later share those pages, which counting references would otherwise copy.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from hotloop.levers.caching.constancy import PLAIN

ALIGNED = 64
OBJECTS = 8
"""Bytes that Python's objects take in memory, for one that it takes to send them."""


class Unfit(Exception):
    """A dataset cannot be kept. Its text is a clause that says why."""


@dataclass(frozen=True)
class Slot:
    """Where a tensor or an array lies in a buffer."""

    offset: int
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Of a tensor in elements, of an array in bytes, as they count themselves."""
    is_array: bool


def mapped(item: Any, change: Callable[[Any], Any], leaves: tuple[type, ...]) -> Any:
    """The item built anew, with its leaves changed. Whatever else it holds must be immutable."""
    kind = type(item)
    if kind in leaves:
        return change(item)
    if kind in PLAIN:
        return item
    if kind is dict and all(type(key) in PLAIN for key in item):
        return {key: mapped(value, change, leaves) for key, value in item.items()}
    if kind is list or kind is tuple:
        return kind([mapped(part, change, leaves) for part in item])
    if kind.__bases__ == (tuple,) and hasattr(kind, "_make"):
        return kind._make([mapped(part, change, leaves) for part in item])
    if _is_number(item):
        return item
    raise Unfit(
        f"the dataset's items hold a {kind.__module__}.{kind.__qualname__}, which may change"
    )


def leaves(torch: Any) -> tuple[type, ...]:
    """What is copied whenever it is handed out."""
    array = getattr(sys.modules.get("numpy"), "ndarray", None)
    return (torch.Tensor, array) if array else (torch.Tensor,)


def packed(torch: Any, items: list[Any]) -> tuple[list[Any], bytearray]:
    """The items with slots in the place of tensors and arrays, and the buffer that these mean."""
    buffer = bytearray()

    def pack(leaf: Any) -> Slot:
        is_tensor = type(leaf) is torch.Tensor
        dense, address = dense_tensor(torch, leaf) if is_tensor else _dense_array(leaf)
        buffer.extend(bytes(-len(buffer) % ALIGNED))
        offset = len(buffer)
        if dense.nbytes:
            buffer.extend(ctypes.string_at(address, dense.nbytes))
        strides = tuple(dense.stride() if is_tensor else dense.strides)
        return Slot(offset, dense.dtype, tuple(dense.shape), strides, not is_tensor)

    return [mapped(item, pack, leaves(torch)) for item in items], buffer


def unpacked(torch: Any, message: list[Any], buffer: bytearray) -> list[Any]:
    """Items whose tensors and arrays lie in the buffer."""
    buffer = buffer or bytearray(ALIGNED)
    storage = torch.frombuffer(buffer, dtype=torch.uint8).untyped_storage()

    def unpack(slot: Slot) -> Any:
        if slot.is_array:
            make = sys.modules["numpy"].ndarray
            return make(slot.shape, slot.dtype, buffer, slot.offset, slot.strides)
        tensor = torch.empty(0, dtype=slot.dtype, device="cpu")
        return tensor.set_(storage, slot.offset // slot.dtype.itemsize, slot.shape, slot.strides)

    return [mapped(one, unpack, (Slot,)) for one in message]


def copied(torch: Any, item: Any) -> Any:
    """To be handed out: a script may change what it is given, and would change what is kept."""

    def copy(leaf: Any) -> Any:
        return leaf.clone() if type(leaf) is torch.Tensor else leaf.copy(order="K")

    return mapped(item, copy, leaves(torch))


def _is_number(item: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(item, numpy.generic) and not item.dtype.hasobject


def dense_tensor(torch: Any, tensor: Any) -> tuple[Any, int]:
    """A copy without gaps, its dimensions in the same order in memory: batches depend on it."""
    if tensor.device.type != "cpu":
        raise Unfit("the dataset's items live on the GPU")
    if tensor.layout is not torch.strided or tensor.is_quantized or tensor.requires_grad:
        raise Unfit(
            "the dataset's items hold tensors that are sparse, quantised or require gradients"
        )
    dense = tensor.resolve_conj().resolve_neg().clone()
    return dense, dense.data_ptr()


def _dense_array(array: Any) -> tuple[Any, int]:
    if array.dtype.hasobject:
        raise Unfit("the dataset's items hold arrays of Python objects, which may change")
    dense = array.copy(order="K")
    return dense, dense.ctypes.data
