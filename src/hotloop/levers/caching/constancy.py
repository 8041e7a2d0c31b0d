"""Whether a dataset hands out the same items every time, as far as that can be seen from outside.

Comparing two draws would miss rare augmentation. So the random generators are watched: the global
ones, and those that the dataset, its transforms or their modules hold. And a fingerprint of the
dataset tells when its items, or the script, have changed it.
"""

from __future__ import annotations

import ctypes
import functools
import operator
import pickle
import random
import sys
import zlib
from collections.abc import Iterator
from itertools import islice
from types import FunctionType, MethodType, ModuleType
from typing import Any

from hotloop.levers.caching.reading import read_by

BREADTH, DEPTH, MOST_PARTS = 32, 8, 4_000
"""How far a dataset is walked through."""
WHOLE_ARRAY = 16 * 2**20
"""Bytes of an array that are all looked at before a pass. Of a larger one, a sample."""
SAMPLE = 1_024

PLAIN = (bool, int, float, complex, str, bytes, type(None))


class Generators:
    """All random generators that an item may draw from."""

    def __init__(self, torch: Any, dataset: Any) -> None:
        self._torch = torch
        self._entropy = 0
        self._numpy = getattr(sys.modules.get("numpy"), "random", None)
        found = [random._inst, torch.default_generator, *self._of(dataset)]
        if self._numpy is not None:
            found.append(self._numpy.mtrand._rand)
        self._all = list({id(one): one for one in found}.values())

    def states(self) -> list[Any]:
        """Differ as soon as anything was drawn."""
        return [self._entropy, *map(self._state, self._all)]

    def watch_entropy(self) -> None:
        """What the system gives to seed a generator that the item makes for itself."""
        urandom = random._urandom  # type: ignore[attr-defined]

        def counted(size: int) -> bytes:
            self._entropy += 1
            return bytes(urandom(size))

        random._urandom = counted  # type: ignore[attr-defined]

    def _of(self, dataset: Any) -> Iterator[Any]:
        modules: set[str] = {"__main__"}
        for part in parts(dataset):
            if self._is_generator(part):
                yield part
            modules.add(getattr(type(part), "__module__", None) or "__main__")
            modules.add(getattr(part, "__module__", None) or "__main__")
        for name in modules:
            values = list(vars(sys.modules[name]).values()) if name in sys.modules else []
            yield from (value for value in values if self._is_generator(value))

    def _is_generator(self, thing: Any) -> bool:
        kinds: list[Any] = [random.Random, self._torch.Generator]
        if self._numpy is not None:
            kinds += [self._numpy.Generator, self._numpy.RandomState]
        return isinstance(thing, tuple(kinds)) and not isinstance(thing, random.SystemRandom)

    def _state(self, generator: Any) -> Any:
        if isinstance(generator, random.Random):
            return generator.getstate()
        if isinstance(generator, self._torch.Generator):
            state = generator.get_state()
            return ctypes.string_at(state.data_ptr(), state.nbytes)
        bits = getattr(generator, "bit_generator", None)
        return pickle.dumps(generator.get_state() if bits is None else bits.state)


def parts(thing: Any) -> Iterator[Any]:
    """A dataset and what it consists of, to some depth: its first elements, all its attributes."""
    seen: set[int] = set()
    level = [thing]
    for _ in range(DEPTH):
        inner: list[Any] = []
        for part in level:
            if id(part) in seen or len(seen) == MOST_PARTS:
                continue
            seen.add(id(part))
            yield part
            inner.extend(_inside(part))
        level = inner


def _inside(part: Any) -> list[Any]:
    if isinstance(part, dict):
        return list(islice(part.values(), BREADTH))
    if isinstance(part, list | tuple | set | frozenset):
        return list(islice(part, BREADTH))
    if isinstance(part, FunctionType):
        return [*(part.__defaults__ or ()), *map(_content, part.__closure__ or ())]
    if isinstance(part, MethodType):
        return [part.__self__, part.__func__]
    if isinstance(part, functools.partial):
        return [part.func, part.args, part.keywords]
    return [] if isinstance(part, (ModuleType, type)) else list(attributes(part).values())


def attributes(thing: Any) -> dict[str, Any]:
    """Its own. None where it has no place for any, or does not show them."""
    try:
        return dict(vars(thing))
    except Exception:
        return {}


class Likeness:
    """What a dataset looked like at one time.

    Its attributes are held, so that no other value can come to lie in the place of an old one.
    """

    def __init__(self, torch: Any, dataset: Any) -> None:
        self._torch = torch
        self._attributes, self._read = attributes(dataset), read_by([dataset])
        self._prints = fingerprint(torch, dataset)

    def holds(self, dataset: Any, thoroughly: bool = True) -> bool:
        """Still. Between two batches a glance at the attributes, and settings, has to do."""
        now, was = attributes(dataset), self._attributes
        if now.keys() != was.keys() or any(now[name] is not was[name] for name in was):
            return False
        read = read_by([dataset])
        if len(read) != len(self._read) or any(map(operator.is_not, read, self._read)):
            return False
        return not thoroughly or self._prints_the_same(dataset)

    def _prints_the_same(self, dataset: Any) -> bool:
        try:
            return fingerprint(self._torch, dataset) == self._prints
        except Exception:  # what the script put into it may raise what it likes
            return False


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing in it yet
        return None


def fingerprint(torch: Any, dataset: Any) -> list[Any]:
    """Differs after a change. Not seen are arrays larger than a few MiB, but for a sample."""
    own = list(parts(dataset))
    read = [part for value in read_by(own) for part in parts(value)]
    return [_print(torch, part) for part in [*own, *read]]


def _print(torch: Any, part: Any) -> Any:
    if isinstance(part, PLAIN):
        return part if part == part else "nan"
    if isinstance(part, ctypes._SimpleCData):  # shared with other processes
        return part.value
    if isinstance(part, torch.Tensor):
        return id(part), tuple(part.shape), 0 if part.is_inference() else part._version
    if isinstance(part, list | tuple | set | frozenset | dict):
        return id(part), len(part), _hash(part)
    array: Any = getattr(sys.modules.get("numpy"), "ndarray", ())
    if isinstance(part, array):
        return id(part), part.shape, _checksum(part)
    return type(part).__name__, id(part)


def _hash(group: Any) -> int:
    """Of all elements; 0 where they have none. Their own parts are looked at as well."""
    try:
        return hash(tuple(group.items() if isinstance(group, dict) else group))
    except Exception:  # an element's own __hash__ may raise what it likes
        return 0


def _checksum(array: Any) -> int:
    if array.dtype.hasobject:
        return 0
    if array.nbytes > WHOLE_ARRAY:
        array = array.flat[:: array.size // SAMPLE]
    return zlib.crc32(array.tobytes())
