"""Which files a dataset names, as far as its attributes show.

Nothing of the dataset is called: an attribute is looked at, and a property is not asked.
"""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from hotloop.levers.caching.kept_items import Unfit
from hotloop.levers.staging.threads import in_threads, keep_to

DEEPEST = 8
"""A dataset in a list in a dataset in a Subset, whose samples are tuples in a list."""
FEW = 16
"""Of a long list so many are looked at first. Where none of them is a path, it holds other things.

And a folder with more files than these by name is used by its files; with fewer, as a whole.
"""
BESIDE = 10
"""Other things that are looked at for each path."""
LONGEST = 4096
"""Characters of a path, as Linux has it."""

NOT_LOOKED_INTO = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType)


def named_files(dataset: Any, most: int, deadline: float) -> dict[str, os.stat_result]:
    """Regular files, by their absolute paths: those it names, and those in folders it names.

    Raises Unfit where there are too many, or the store is too slow to tell.
    """
    walk = _Walk(most)
    walk.into(dataset)
    found = _statuses(walk.paths, most, deadline)
    files = {path: known for path, known in found.items() if stat.S_ISREG(known.st_mode)}
    folders = [path for path, known in found.items() if stat.S_ISDIR(known.st_mode)]
    held = Counter(str(folder) for path in files for folder in PurePath(path).parents)
    beneath: dict[str, None] = {}
    for folder in folders:
        for path in _beneath(folder, deadline) if held[folder] <= FEW else ():
            beneath[path] = None
            if len(beneath) > most:
                raise Unfit(_too_many(most))
    more = _statuses([path for path in beneath if path not in files], most, deadline)
    return files | {path: known for path, known in more.items() if stat.S_ISREG(known.st_mode)}


def names_files(dataset: Any, most: int = 256) -> bool:
    """Whether it names a file or a folder that exists. No folder is searched."""
    walk = _Walk(most)
    walk.into(dataset)
    return any(map(_exists, walk.paths))


class _Walk:
    """Through what can be reached from a dataset, each thing once."""

    def __init__(self, most: int) -> None:
        self.paths: dict[str, None] = {}
        self._most = most
        self._met: set[int] = set()

    def into(self, thing: Any, depth: int = 0) -> None:
        try:
            self._look(thing, depth)
        except Exception:  # a dataset's own attributes may raise what they like
            return

    def _look(self, thing: Any, depth: int) -> None:
        if depth > DEEPEST or max(len(self.paths), len(self._met) / BESIDE) > self._most:
            return
        if isinstance(thing, str | bytes | os.PathLike):
            self._take(os.fsdecode(thing))
        elif id(thing) not in self._met and not isinstance(thing, int | float | None):
            self._met.add(id(thing))
            for part in self._parts(thing, depth):
                self.into(part, depth + 1)

    def _parts(self, thing: Any, depth: int) -> Sequence[Any]:
        if isinstance(thing, dict):
            return (*self._if_paths(list(thing), depth), *self._if_paths([*thing.values()], depth))
        if isinstance(thing, list | tuple):
            return self._if_paths(thing, depth)
        if hasattr(thing, "dtype"):  # a tensor, or an array, which may be one of strings
            is_text = getattr(thing.dtype, "kind", "") in ("U", "O")
            return self._if_paths(thing.ravel().tolist(), depth) if is_text else ()
        if isinstance(thing, NOT_LOOKED_INTO):
            return ()
        return list(getattr(thing, "__dict__", {}).values())

    def _if_paths(self, things: Sequence[Any], depth: int) -> Sequence[Any]:
        """A million sentences are not asked of a file system one by one."""
        if len(things) <= FEW:
            return things
        some = _Walk(FEW)
        for thing in things[:: len(things) // FEW]:
            some.into(thing, depth + 1)
        return things if any(map(_exists, some.paths)) else ()

    def _take(self, path: str) -> None:
        if path and len(path) <= LONGEST and "\0" not in path and "\n" not in path:
            self.paths[os.path.abspath(path)] = None


def _exists(path: str) -> bool:
    return _status(path) is not None


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):
        return None


def _statuses(paths: Iterable[str], most: int, deadline: float) -> dict[str, os.stat_result]:
    """Of those that exist."""
    asked = list(paths)
    if len(asked) > most:
        raise Unfit(_too_many(most))
    statuses = in_threads(_status, asked, deadline)
    return {path: known for path, known in zip(asked, statuses, strict=True) if known is not None}


def _beneath(folder: str, deadline: float) -> Iterator[str]:
    """Hidden folders hold no data: those of version control, of caches."""
    if folder == os.sep:
        return
    for place, folders, names in os.walk(folder):
        keep_to(deadline)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(place, name) for name in sorted(names))


def _too_many(most: int) -> str:
    return f"the dataset names more than {most:,} files"
