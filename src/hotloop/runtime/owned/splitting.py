"""A batch taken apart into microbatches, and moved, whatever it is put together from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from hotloop.errors import JobInvalid


def parts(torch: Any, batch: Any, rows: int, size: int) -> Iterator[tuple[Any, int]]:
    """Each part with its number of samples. Parts are views: nothing is copied.

    Every tensor is cut once, into all of its parts: between two tiny passes each call counts.
    """
    if size >= rows:
        yield batch, rows
        return
    cut = _Cut(torch, rows, size)
    taken_apart = cut.each(batch)
    if not cut.found:
        raise JobInvalid(
            f"A batch of type {type(batch).__name__} cannot be taken apart into microbatches.",
            "Return tensors, or lists, tuples and dicts of them, or set microbatch to 0.",
        )
    yield from zip(taken_apart, cut.counts, strict=True)


def moved(batch: Any, device: Any) -> Any:
    def move(value: Any) -> Any:
        to = getattr(value, "to", None)
        return to(device) if callable(to) else value

    return _mapped(batch, move)


class _Cut:
    """A batch of `rows` samples in parts of `size`, of which the last may be smaller."""

    def __init__(self, torch: Any, rows: int, size: int) -> None:
        self.found = False
        """Whether anything of the batch is by the sample."""
        self.counts = [min(size, rows - start) for start in range(0, rows, size)]
        self._tensor = torch.Tensor
        self._rows = rows
        self._size = size

    def each(self, value: Any) -> Sequence[Any]:
        """What each part has in the place of `value`."""
        if isinstance(value, Mapping):
            columns = [self.each(inner) for inner in value.values()]
            made = (dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True))
            return [_like(value, part) for part in made] or self._all(value)
        if self._is_by_sample(value):
            self.found = True
            return self._slices(value)
        if isinstance(value, list | tuple):
            columns = [self.each(inner) for inner in value]
            return [_like(value, part) for part in zip(*columns, strict=True)] or self._all(value)
        return self._all(value)

    def _all(self, value: Any) -> Sequence[Any]:
        return [value] * len(self.counts)

    def _is_by_sample(self, value: Any) -> bool:
        if isinstance(value, self._tensor):
            return bool(value.dim()) and len(value) == self._rows
        return isinstance(value, list | tuple) and _is_a_list_of_samples(value, self._rows)

    def _slices(self, value: Any) -> Sequence[Any]:
        if isinstance(value, self._tensor):
            if not value.requires_grad:
                # Safe here, and parts may be changed in place, which those of `split` may not.
                whole: Sequence[Any] = value.unsafe_split(self._size)
                return whole
            starts = range(0, self._rows, self._size)
            return [value.narrow(0, *place) for place in zip(starts, self.counts, strict=True)]
        return [value[at : at + self._size] for at in range(0, self._rows, self._size)]


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """`change` on everything inside."""
    if isinstance(value, Mapping):
        return _like(value, {name: _mapped(part, change) for name, part in value.items()})
    if isinstance(value, list | tuple):
        return _like(value, [_mapped(part, change) for part in value])
    return change(value)


def _is_a_list_of_samples(value: Any, rows: int) -> bool:
    """As many entries as there are samples, none of which is a batch of them itself."""
    if len(value) != rows:
        return False
    return not any(getattr(entry, "shape", ())[:1] == (rows,) for entry in value)


def _like(value: Any, made: Any) -> Any:
    """`made`, as the class that `value` has, where that can be."""
    if isinstance(value, Mapping):
        return made if type(value) is dict else _rebuilt(value, made)
    return type(value)(*made) if hasattr(value, "_fields") else type(value)(made)


def _rebuilt(value: Any, made: dict[Any, Any]) -> Any:
    """As a mapping of the same class, where that can be made from a dict."""
    try:
        return type(value)(made)
    except TypeError:
        return made
