"""What stands in a dataset's place where a loader asks for items, in the job or in a worker."""

from __future__ import annotations

from typing import Any

from hotloop.levers.caching.cache import Cache
from hotloop.levers.caching.shelf import Shelf


class View:
    """Its items are copies of the ones that are kept."""

    def __init__(self, dataset: Any, cache: Cache, is_final: bool) -> None:
        """`is_final`: as in workers, who hear nothing of what the script changes meanwhile."""
        self._dataset, self._cache = dataset, cache
        self._final = cache.shelf if is_final else None

    def __getitem__(self, number: Any) -> Any:
        shelf = self._shelf()
        return shelf.item(number) if number in shelf else self._missed(number)

    def __getitems__(self, numbers: Any) -> list[Any]:
        return [self[number] for number in numbers]

    def _shelf(self) -> Shelf:
        return self._cache.shelf if self._final is None else self._final

    def _missed(self, number: Any) -> Any:
        self._cache.miss()
        return self._dataset[number]


class Batches(View):
    """Together with torch's own way to make a batch of items, whose tensors are new.

    Nobody sees the items themselves then, and copying each first would take most of the time. So
    does going through them: where they are alike, a batch is read as a whole, if torch's own has
    shown to be the same.
    """

    def __init__(self, torch: Any, dataset: Any, cache: Cache, is_final: bool) -> None:
        super().__init__(dataset, cache, is_final)
        self._torch = torch
        self._is_read_at_once: bool | None = None
        """None: no batch has shown it yet."""

    def __getitems__(self, numbers: Any) -> list[Any]:
        return list(numbers)

    def collated(self, numbers: list[Any]) -> Any:
        shelf = self._shelf()
        is_whole = bool(numbers) and all(number in shelf for number in numbers)
        if is_whole and self._is_read_at_once:
            return shelf.batch(numbers)
        items = [shelf.kept(n) if n in shelf else self._missed(n) for n in numbers]
        batch = self._torch.utils.data.default_collate(items)
        if is_whole and self._is_read_at_once is None:
            self._is_read_at_once = _are_same(self._torch, batch, shelf.batch(numbers))
        return batch


def _are_same(torch: Any, one: Any, other: Any) -> bool:
    """To the bit, and in memory too."""
    if type(one) is not type(other):
        return False
    if isinstance(one, torch.Tensor):
        forms = [(each.device, each.dtype, each.shape, each.stride()) for each in (one, other)]
        if forms[0] != forms[1]:
            return False
        return bool(torch.equal(one.view(torch.uint8), other.view(torch.uint8)))
    if isinstance(one, dict):
        pairs = zip(one.items(), other.items(), strict=False)
        return len(one) == len(other) and all(
            key == of_other and _are_same(torch, value, its)
            for (key, value), (of_other, its) in pairs
        )
    if isinstance(one, list | tuple):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(_are_same(torch, *pair) for pair in pairs)
    return bool(one == other)
