"""A batch taken apart into microbatches, and moved, whatever it is put together from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hotloop.errors import JobInvalid


def parts(torch: Any, batch: Any, rows: int, size: int) -> Iterator[tuple[Any, int]]:
    """Each part with its number of samples. Parts are views: nothing is copied."""
    if size >= rows:
        yield batch, rows
        return
    for start in range(0, rows, size):
        count = min(size, rows - start)
        taken = [0]
        part = _mapped(batch, _cut(torch, rows, start, count, taken), rows)
        if not taken[0]:
            raise JobInvalid(
                f"A batch of type {type(batch).__name__} cannot be taken apart into microbatches.",
                "Return tensors, or lists, tuples and dicts of them, or set microbatch to 0.",
            )
        yield part, count


def moved(batch: Any, device: Any) -> Any:
    def move(value: Any) -> Any:
        to = getattr(value, "to", None)
        return to(device) if callable(to) else value

    return _mapped(batch, move, None)


def _cut(torch: Any, rows: int, start: int, count: int, taken: list[int]) -> Callable[[Any], Any]:
    def cut(value: Any) -> Any:
        is_tensor = isinstance(value, torch.Tensor)
        if is_tensor and value.dim() and len(value) == rows:
            taken[0] += 1
            return value.narrow(0, start, count)
        if isinstance(value, list | tuple) and len(value) == rows:
            taken[0] += 1
            return value[start : start + count]
        return value

    return cut


def _mapped(value: Any, change: Callable[[Any], Any], rows: int | None) -> Any:
    """`change` on everything inside, and on a list of one entry a sample."""
    if isinstance(value, Mapping):
        made = {name: _mapped(part, change, rows) for name, part in value.items()}
        return made if type(value) is dict else _rebuilt(value, made)
    if isinstance(value, list | tuple) and not _is_a_list_of_samples(value, rows):
        inner = [_mapped(part, change, rows) for part in value]
        return type(value)(*inner) if hasattr(value, "_fields") else type(value)(inner)
    return change(value)


def _is_a_list_of_samples(value: Any, rows: int | None) -> bool:
    """As many entries as there are samples, none of which is a batch of them itself."""
    if rows is None or len(value) != rows:
        return False
    return not any(getattr(entry, "shape", ())[:1] == (rows,) for entry in value)


def _rebuilt(value: Any, made: dict[Any, Any]) -> Any:
    """As a mapping of the same class, where that can be made from a dict."""
    try:
        return type(value)(made)
    except TypeError:
        return made
