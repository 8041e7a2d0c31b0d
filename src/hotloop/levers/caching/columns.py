"""Items that are all alike, kept as one tensor for each of their parts.

A batch is then one reading of each part, where items in objects of their own are gone through one
by one. It is built as the items are; whether torch would build the same is for others to see.
"""

from __future__ import annotations

import ctypes
import math
import sys
from dataclasses import dataclass
from functools import partial
from typing import Any

from hotloop.levers.caching.kept_items import ALIGNED, dense_tensor, leaves, mapped

NUMBERS = (bool, int, float, complex)
LARGE = 2**20
"""Bytes from which on threads pay that copy them together. They wait for each other, and on cores
that have other work for thousands of times as long as the copying takes.
"""


@dataclass(frozen=True)
class Part:
    """What all items have in one place."""

    place: int
    kind: Any
    dtype: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """Those of a dimension of one may be any, and decide on the order of what is made of it."""


@dataclass
class Columns:
    """Rows of items that are alike: some of them, or all."""

    torch: Any
    layout: Any
    """An item, with a `Part` wherever items differ."""
    rows: list[Any]

    @classmethod
    def of(cls, torch: Any, items: list[Any]) -> Columns | None:
        """None where they are not alike, or nothing but Python can hold them."""
        layout, values = _apart(torch, items[0])
        rows = [[value] for value in values]
        for item in items[1:]:
            other, values = _apart(torch, item)
            if other != layout:
                return None
            for row, value in zip(rows, values, strict=True):
                row.append(value)
        if not rows or any(value is None for row in rows for value in row):
            return None
        return cls(torch, layout, [torch.stack(row) for row in rows])

    def emptied(self, count: int) -> Columns:
        """Room for that many items like these."""
        empty = partial(self.torch.empty, device="cpu")
        rows = [empty((count, *row.shape[1:]), dtype=row.dtype) for row in self.rows]
        return Columns(self.torch, self.layout, rows)

    def put(self, first: int, others: Columns) -> None:
        for row, other in zip(self.rows, others.rows, strict=True):
            row[first : first + len(other)] = other

    def item(self, index: int) -> Any:
        """Its tensors and arrays are those that are kept: not to be handed out."""
        return mapped(self.layout, lambda part: self._value(part, index), (Part,))

    def batch(self, numbers: list[int]) -> Any:
        """Of these items, in new tensors; in a worker, where torch shares them with the job."""
        chosen = [_chosen(self.torch, row, numbers) for row in self.rows]
        return mapped(_listed(self.layout), lambda part: chosen[part.place], (Part,))

    def packed(self) -> tuple[tuple[Any, int], bytearray]:
        """To be sent to another process: what they are, and their bytes."""
        buffer = bytearray()
        for row in self.rows:
            buffer.extend(bytes(-len(buffer) % ALIGNED))
            buffer.extend(ctypes.string_at(row.data_ptr(), row.nbytes))
        return (self.layout, len(self.rows[0])), buffer

    @classmethod
    def unpacked(cls, torch: Any, message: tuple[Any, int], buffer: bytearray) -> Columns:
        layout, count = message
        rows, start = [], 0

        def read(part: Part) -> None:
            nonlocal start
            start += -start % ALIGNED
            number, shape = count * math.prod(part.shape), (count, *part.shape)
            row = torch.frombuffer(buffer, dtype=part.dtype, count=number, offset=start)
            rows.append(row.view(shape))
            start += row.nbytes

        mapped(layout, read, (Part,))
        return cls(torch, layout, rows)

    def _value(self, part: Part, index: int) -> Any:
        row = self.rows[part.place][index]
        if part.kind is self.torch.Tensor:
            return row.as_strided(part.shape, part.strides)
        if part.kind in NUMBERS:
            return row.item()
        array = row.numpy()
        return array if part.kind is type(array) else array[()]


def _apart(torch: Any, item: Any) -> tuple[Any, list[Any]]:
    """How it is built, and the values in it. None: a value that has to be kept as it is."""
    values: list[Any] = []

    def take(leaf: Any) -> Part:
        value = _as_tensor(torch, leaf)
        values.append(value)
        if value is None:
            return Part(len(values) - 1, type(leaf), None, (), ())
        form = value.dtype, tuple(value.shape), value.stride()
        return Part(len(values) - 1, type(leaf), *form)

    return mapped(item, take, (*leaves(torch), *NUMBERS, *_scalars())), values


def _as_tensor(torch: Any, leaf: Any) -> Any:
    """In one piece, its last dimension lying closest. None where it is not, or has no numbers."""
    if type(leaf) is torch.Tensor:
        return dense_tensor(torch, leaf)[0] if leaf.is_contiguous() and leaf.numel() else None
    try:
        if type(leaf) in NUMBERS:
            wide = {float: torch.float64, complex: torch.complex128}
            return torch.tensor(leaf, dtype=wide.get(type(leaf)), device="cpu")
        numpy = sys.modules["numpy"]
        array = numpy.array(leaf)  # a copy: one that may not be written to brings a warning
        is_whole = array.size and getattr(leaf, "flags", array.flags).c_contiguous
        return torch.from_numpy(array) if is_whole else None
    except (TypeError, ValueError, RuntimeError, KeyError):  # a text, a date, too large a number
        return None


def _scalars() -> tuple[Any, ...]:
    numpy = sys.modules.get("numpy")
    return tuple(set(numpy.sctypeDict.values())) if numpy else ()


def _listed(layout: Any) -> Any:
    """As torch builds batches: a tuple becomes a list, unless its fields have names."""
    if type(layout) is dict:
        return {key: _listed(value) for key, value in layout.items()}
    if type(layout) is tuple or type(layout) is list:
        return [_listed(value) for value in layout]
    make = getattr(layout, "_make", None)
    return make(map(_listed, layout)) if make else layout


def _chosen(torch: Any, row: Any, numbers: list[int]) -> Any:
    shape = (len(numbers), *row.shape[1:])
    place = _place(torch, row.dtype, shape)
    numpy = sys.modules.get("numpy")
    if numpy is None or place.nbytes > LARGE:
        return torch.index_select(row, 0, torch.tensor(numbers, device="cpu"), out=place)
    source, target = (one.view(len(one), -1).view(torch.uint8).numpy() for one in (row, place))
    numpy.take(source, numpy.array(numbers), axis=0, out=target, mode="clip")  # they are in range
    return place


def _place(torch: Any, dtype: Any, shape: tuple[int, ...]) -> Any:
    """For a batch; a worker makes it where the job will see it, as torch does. On the host,
    whichever device a script has tensors made on."""
    if torch.utils.data.get_worker_info() is None:
        return torch.empty(shape, dtype=dtype, device="cpu")
    storage = torch.UntypedStorage._new_shared(math.prod(shape) * dtype.itemsize)
    return torch.empty(0, dtype=dtype, device="cpu").set_(storage, 0, shape)
