"""A dataset's files are copied to a RAM disk once, and read from there.

For stores that are slow at every opening and reading of a file, in later passes as in the first: a
file system over a network, a mount by FUSE. The files are found by the paths that the dataset's
attributes hold. Items are made anew each time, with their random augmentation, by the dataset's own
code; only where that has Python open one of the files, the copy is opened.
"""

from __future__ import annotations

import os
import time
import weakref
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse
from hotloop.levers.caching.kept_items import Unfit
from hotloop.levers.caching.obstacles import IN_MEMORY, start_method
from hotloop.levers.staging import folders
from hotloop.levers.staging.copying import copy_all, to_copy
from hotloop.levers.staging.files import named_files
from hotloop.levers.staging.redirecting import Redirection
from hotloop.levers.waiting import needless

if TYPE_CHECKING:
    from hotloop.seams import Seams

FILL_SECONDS = 60
MOST_FILES = 200_000


@dataclass
class StageData(Lever):
    name = "stage_data"
    summary = "files of a dataset are copied to a RAM disk and read from there"
    group = Group.DATA
    effect = Effect.SAME_MATH
    not_for_memory = "the files' copies on a RAM disk take memory"

    fill_seconds: int = FILL_SECONDS
    """The most that copying may take, for each dataset."""
    memory_share: float = 0.5
    """Of what the RAM disk and the host have left, whichever is less, for each dataset."""

    def __post_init__(self) -> None:
        self._loaders: weakref.WeakSet[Any] = weakref.WeakSet()
        self._met: set[str] = set()
        self._folder: folders.Folder | None = None
        self._redirection = Redirection()
        self._reasons: list[str] = []
        self._datasets = self._files = self._bytes = 0
        self._seconds = 0.0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        if reason := needless(seen):
            return refuse(reason)
        loader, share = seen.loader, seen.share("data")
        assert loader is not None
        if loader.dataset in IN_MEMORY:
            return refuse("the dataset's items lie in memory already")
        if loader.names_files is False:
            return refuse("the dataset names no files")
        return Expectation(share)

    def problem(self) -> str:
        if not 0 < self.memory_share <= 0.9:
            return f"memory_share must be above 0 and at most 0.9, not {self.memory_share}"
        return "" if self.fill_seconds > 0 else "fill_seconds must be above 0"

    def apply(self, torch: Any, seams: Seams) -> None:
        seams.loader.before.append(self._begin)

    def receipt(self) -> Receipt:
        if reads := self._redirection.reads:
            receipt = self.applied(
                datasets=self._datasets,
                files=self._files,
                bytes=self._bytes,
                seconds=round(self._seconds, 3),
                reads=reads,
            )
            return replace(receipt, once_seconds=self._seconds)
        if self._files:
            return self.not_applied(
                "Python opened no file that is staged; readers written in C open files themselves"
            )
        return self.not_applied(self._reasons[0] if self._reasons else "the script has no loader")

    def end(self) -> None:
        """Files are read from where they were, and the memory is given back."""
        self._redirection.end()
        if self._folder is not None:
            self._folder.remove()
            self._folder = None

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        loader = args[0]
        if loader in self._loaders:
            return
        self._loaders.add(loader)
        began = time.monotonic()
        try:
            if reason := _obstacle(loader):
                raise Unfit(reason)
            self._stage(loader.dataset, began + self.fill_seconds)
        except Unfit as unfit:
            self._reasons.append(str(unfit))
        except OSError as error:
            self._reasons.append(f"the RAM disk cannot be used ({type(error).__name__})")
        except Exception as error:  # a dataset's own attributes may raise what they like
            self._reasons.append(f"the dataset cannot be looked into: {type(error).__name__}")
        self._seconds += time.monotonic() - began

    def _stage(self, dataset: Any, deadline: float) -> None:
        found = named_files(dataset, MOST_FILES, deadline)
        new = {path: known for path, known in found.items() if path not in self._met}
        if found and not new:  # another loader of the same data
            return
        self._met.update(new)
        files = to_copy(new, folders.RAM_DISK, self.memory_share)
        if self._folder is None:
            self._folder = folders.Folder(folders.RAM_DISK)
        copied = copy_all(files, os.path.join(self._folder.path, str(self._datasets)), deadline)
        self._redirection.add(copied.copies)
        self._datasets += 1
        self._files += len(copied.copies)
        self._bytes += copied.bytes


def _obstacle(loader: Any) -> str:
    if not os.path.isdir(folders.RAM_DISK):
        return f"this system has no RAM disk at {folders.RAM_DISK}"
    if loader.num_workers and (way := start_method(loader)) != "fork":
        return f"the loader's workers start by {way}, and would not know of the copies"
    return ""
