"""How many samples a batch, or the arguments of a module, hold: the first dimension of a tensor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_DEPTH = 4


def count(batch: Any, depth: int = _DEPTH) -> int:
    """0 where nothing countable is found."""
    try:
        first = batch[0] if type(batch) in (list, tuple) and batch else batch
        shape = first.shape  # what nearly every batch has, and quickly
        if isinstance(shape, tuple) and shape and type(shape[0]) is int:
            return shape[0]
    except Exception:  # a script's own classes answer as they like
        pass
    try:
        return _count(batch, depth)
    except Exception:
        return 0


def in_pass(iterator: Any) -> tuple[int, int] | None:
    """How many a loader draws in a pass, and how many at a time. None: it does not say.

    Asked once a pass: how long a dataset is may be computed by code of the script's own.
    """
    try:
        sampler = iterator._index_sampler
        size = sampler.batch_size
        if type(size) is not int or not iterator._auto_collation:
            return None
        return len(sampler.sampler), size
    except Exception:  # a sampler of the script's own, data without an end, an older torch
        return None


def drawn(iterator: Any, of: tuple[int, int] | None, batch: Any) -> int:
    """What a loader has drawn for a batch, where it knows that.

    The first dimension may be another: atoms of all molecules, words before sentences.
    """
    if of is not None:
        whole, size = of
        left: int = whole - (iterator._num_yielded - 1) * size
        if left > 0:
            return min(size, left)
    return count(batch)


def given(arguments: Any) -> int:
    """Negative where a model has made some of them: of samples that it was given before.

    A recurrent cell is called for every word of a sequence, with the state of the call before; a
    head, with what another part has made of a batch.
    """
    held = count(arguments)
    try:
        return -held if _is_made(arguments, _DEPTH) else held
    except Exception:
        return held


def _is_made(argument: Any, depth: int) -> bool:
    if depth and type(argument) in (list, tuple, dict):
        within = argument.values() if type(argument) is dict else argument
        return any(_is_made(one, depth - 1) for one in within)
    return getattr(argument, "grad_fn", None) is not None


def _count(batch: Any, depth: int) -> int:
    shape = getattr(batch, "shape", None)
    if shape is not None:
        return int(shape[0]) if len(shape) else 0
    if depth == 0:
        return 0
    if isinstance(batch, list) and _are_objects(batch):
        return len(batch)
    if isinstance(batch, list | tuple):
        return _first(batch, depth) or (len(batch) if batch and _is_plain(batch[0]) else 0)
    if isinstance(batch, Mapping):
        return _first(batch.values(), depth)
    graphs = getattr(batch, "num_graphs", None)  # a batch of graphs joins them into one
    if isinstance(graphs, int):
        return graphs
    fields = getattr(batch, "__dict__", None)
    return _first(fields.values(), depth) if fields else 0


def _are_objects(batch: list[Any]) -> bool:
    """Whether it lists objects of one class of the script's own, each a sample: graphs, say.

    Dictionaries in a list are left out: they may as well be two inputs, each a batch.
    """
    if len(batch) < 2 or type(batch[0]) is not type(batch[-1]):
        return False
    one = batch[0]
    is_batch = hasattr(one, "shape") or hasattr(one, "num_graphs") or isinstance(one, Mapping)
    return not is_batch and bool(getattr(one, "__dict__", None))


def _first(values: Any, depth: int) -> int:
    """A tensor that stands by itself is a batch; for want of one, a list of pictures is."""
    for value in sorted(values, key=lambda value: _dimensions(value) == 0):
        if isinstance(value, list | tuple) and len(value) > 1 and _dimensions(value[0]) > 1:
            return len(value)
        found = 0 if _is_plain(value) else count(value, depth - 1)
        if found:
            return found
    return 0


def _dimensions(value: Any) -> int:
    try:
        return len(value.shape)
    except Exception:
        return 0


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bytes | int | float)
