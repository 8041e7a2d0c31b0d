"""From what a job's `data()` returns to batches, in an order that depends on the seed alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hotloop.errors import JobInvalid
from hotloop.runtime.owned import augmenting
from hotloop.training_job import TrainingJob

HELP = "Return a Dataset, tensors of one length, or an iterable of batches."


class Feed:
    """Where batches come from. `resizable`: whether we put them together ourselves."""

    def __init__(
        self, torch: Any, job: TrainingJob, batch_size: int, augments: bool = True
    ) -> None:
        """`augments`: whether samples are augmented where they are loaded."""
        self._job = job
        self._augment = augmenting.of(job) if augments else None
        data = job.data()
        columns = tensors_of(torch, data)
        self.resizable = True
        if columns is not None:
            self._batches = _of_tensors(torch, job, batch_size, data, columns, self._taken())
        elif _is_dataset(torch, data):
            own = isinstance(data, torch.utils.data.IterableDataset)
            augment = None if own else self._taken()
            self._batches = _of_dataset(torch, job, batch_size, data, augment)
        elif isinstance(data, Iterable) and not isinstance(data, str | bytes):
            self.resizable = False
            self._batches = data
        else:
            kind = "None" if data is None else f"a {type(data).__name__}"
            raise JobInvalid(f"{type(job).__name__}.data() must not return {kind}.", HELP)
        self._spent = False

    def __iter__(self) -> Iterator[Any]:
        """One epoch. What can be iterated but once is asked for again."""
        if self._spent and isinstance(self._batches, Iterator):
            self._batches = self._job.data()
        self._spent = True
        batches: Iterator[Any] = iter(self._batches)
        augment = self._augment
        if augment is None:
            return batches
        return (augmenting.changed(batch, augment) for batch in batches)

    def _taken(self) -> augmenting.Change | None:
        """What the dataset does itself is not done again to its batches."""
        augment, self._augment = self._augment, None
        return augment


class TensorData:
    """Tensors of one length as a dataset: a whole batch is one indexing a tensor."""

    def __init__(self, data: Any, length: int) -> None:
        self.data = data
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: Any) -> Any:
        return self.__getitems__(index)

    def __getitems__(self, indices: Any) -> Any:
        """What a loader asks for where there is one: a batch at once."""
        data = self.data
        if isinstance(data, Mapping):
            return {name: tensor[indices] for name, tensor in data.items()}
        if isinstance(data, list | tuple):
            return tuple(tensor[indices] for tensor in data)
        return data[indices]


class BatchOrder:
    """The indices of each batch as one tensor, where the data lies: nothing is done an index."""

    def __init__(self, torch: Any, job: TrainingJob, batch_size: int, like: Any) -> None:
        self.batch_size = batch_size
        self.drop_last = job.drop_last
        self._torch = torch
        self._shuffle = job.shuffle
        self._generator = torch.Generator().manual_seed(job.seed)
        self._device = like.device
        self._length = len(like)

    def __len__(self) -> int:
        whole, rest = divmod(self._length, self.batch_size)
        return whole + bool(rest and not self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        """Draws only when the first batch is asked for: with workers a loader asks for two of these
        and uses one."""
        torch = self._torch
        if self._shuffle:
            order = torch.randperm(self._length, generator=self._generator)
        else:
            order = torch.arange(self._length)
        # Drawn on the host, so that it is the same everywhere; moved once an epoch.
        batches = order.to(self._device).split(self.batch_size)
        yield from batches[: len(self)]


def tensors_of(torch: Any, data: Any) -> list[Any] | None:
    """The tensors that `data` consists of, if it is nothing else; of one length."""
    if isinstance(data, torch.Tensor):
        found = [data]
    elif isinstance(data, Mapping):
        found = list(data.values())
    elif isinstance(data, list | tuple):
        found = list(data)
    else:
        return None
    if not found or not all(isinstance(one, torch.Tensor) and one.dim() for one in found):
        return None
    lengths = sorted({len(tensor) for tensor in found})
    if len(lengths) > 1:
        raise JobInvalid(
            f"Its data() returns tensors of different lengths: {lengths[0]} and {lengths[-1]}.",
            "The first dimension of each is the sample. " + HELP,
        )
    return found


def as_it_is(batch: Any) -> Any:
    """Instead of putting a batch together: it already is."""
    return batch


def _is_dataset(torch: Any, data: Any) -> bool:
    if isinstance(data, torch.utils.data.Dataset):
        return True
    by_index = hasattr(data, "__getitem__") and hasattr(data, "__len__")
    return by_index and not isinstance(data, list | tuple | str | bytes | Mapping)


def _of_tensors(
    torch: Any,
    job: TrainingJob,
    batch_size: int,
    data: Any,
    columns: list[Any],
    augment: augmenting.Change | None,
) -> Any:
    order = BatchOrder(torch, job, batch_size, columns[0])
    dataset = TensorData(data, len(columns[0]))
    return torch.utils.data.DataLoader(
        dataset if augment is None else augmenting.Augmented(dataset, augment),
        batch_sampler=order,
        num_workers=job.workers,
        collate_fn=as_it_is,
    )


def _of_dataset(
    torch: Any, job: TrainingJob, batch_size: int, data: Any, augment: augmenting.Change | None
) -> Any:
    """A dataset that puts its samples together in its own way has a method `collate`."""
    in_its_own_order = isinstance(data, torch.utils.data.IterableDataset)
    return torch.utils.data.DataLoader(
        data if augment is None else augmenting.Augmented(data, augment),
        batch_size=batch_size,
        shuffle=job.shuffle and not in_its_own_order,
        drop_last=job.drop_last,
        num_workers=job.workers,
        collate_fn=getattr(data, "collate", None),
        generator=torch.Generator().manual_seed(job.seed),
    )
