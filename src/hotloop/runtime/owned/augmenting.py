"""Augmentation that a job declares: where samples are loaded, or on the device by the batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hotloop.training_job import TrainingJob

Change = Callable[[Any], Any]

_off = [False]


def switch_off() -> None:
    """In an examined trial, as dropout is: elsewhere it draws other numbers, and none is wrong."""
    _off[0] = True


def switch_on() -> None:
    _off[0] = False


def of(job: TrainingJob) -> Change | None:
    """What the job declares; None when it declares nothing."""
    if type(job).augment is TrainingJob.augment:
        return None

    def augment(inputs: Any) -> Any:
        return inputs if _off[0] else job.augment(inputs)

    return augment


def changed(batch: Any, change: Change) -> Any:
    """A batch, with its inputs changed: the batch itself, or the first of what it consists of."""
    if isinstance(batch, Mapping):
        first = next(iter(batch))
        return {**batch, first: change(batch[first])}
    if isinstance(batch, list | tuple):
        inner = [change(batch[0]), *batch[1:]]
        return type(batch)(*inner) if hasattr(batch, "_fields") else type(batch)(inner)
    return change(batch)


class Augmented:
    """A dataset whose items are augmented where they are loaded: each as a batch of one."""

    def __init__(self, data: Any, augment: Change) -> None:
        self.data = data
        self._augment = augment
        if hasattr(data, "__getitems__"):
            self.__getitems__ = self._batch
        if hasattr(data, "collate"):
            self.collate = data.collate

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: Any) -> Any:
        return changed(self.data[index], lambda one: self._augment(one[None])[0])

    def _batch(self, indices: Any) -> Any:
        """Of data that comes a batch at a time, or as a list of samples."""
        batch = self.data.__getitems__(indices)
        if isinstance(batch, list):
            return [changed(one, lambda x: self._augment(x[None])[0]) for one in batch]
        return changed(batch, self._augment)
