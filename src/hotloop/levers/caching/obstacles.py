"""Why a dataset cannot be kept, as far as it shows before an item is drawn."""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Sized
from typing import Any

from hotloop.levers.loader_workers import lives_on_device

IN_MEMORY = ("TensorDataset", "list", "tuple", "Tensor", "ndarray", "range")


def obstacle(torch: Any, loader: Any) -> str:
    """Empty where there is none."""
    dataset = loader.dataset
    inner = _innermost(torch, dataset)
    if isinstance(dataset, torch.utils.data.IterableDataset) or not isinstance(dataset, Sized):
        return "the dataset's items cannot be asked for by number"
    if type(inner).__name__ in IN_MEMORY:
        return "the dataset's items lie in memory already"
    if callable(getattr(inner, "__getitems__", None)):
        return "the dataset hands out whole batches, whose items may depend on each other"
    if lives_on_device(torch, dataset):
        return "the dataset lives on the GPU"
    return _fork_obstacle(loader)


def _innermost(torch: Any, dataset: Any) -> Any:
    """A part of a dataset hands out what the whole does."""
    while type(dataset) is torch.utils.data.Subset:
        dataset = dataset.dataset
    return dataset


def _fork_obstacle(loader: Any) -> str:
    if sys.platform != "linux":
        return "the cache is filled by forked processes, which are safe on Linux alone"
    way = start_method(loader)
    if loader.num_workers and way != "fork":
        return f"the loader's workers start by {way}, and each would get a copy of all items"
    return ""


def start_method(loader: Any) -> str:
    """How its workers start, if it has any."""
    context = getattr(loader, "multiprocessing_context", None) or multiprocessing
    return context.get_start_method(allow_none=True) or "fork"
