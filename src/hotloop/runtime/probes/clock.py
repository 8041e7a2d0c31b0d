"""When everything happened: two entries in a log for each span, and nothing else.

A span is logged when it ends. Inner spans end before outer ones, so the log is put in order of time
when it is read.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from operator import itemgetter
from threading import get_ident
from time import perf_counter_ns
from typing import Any

from hotloop.measurement import Events, Kind
from hotloop.runtime.probes import samples
from hotloop.seams import After, Seams

MOST_EVENTS = 400_000

_DATA, _COPY = int(Kind.DATA_BEGIN), int(Kind.COPY_BEGIN)
_FORWARD, _NO_GRAD = int(Kind.FORWARD_BEGIN), int(Kind.NO_GRAD_BEGIN)


class Numbers:
    """Small numbers for objects. One that replaces another of the same signature takes its number.

    By identity, not by hash: a script's own classes may define neither equality nor hashing well.
    """

    def __init__(
        self,
        signature: Callable[[Any], object],
        meet: Callable[[int, Any], None] = lambda number, thing: None,
    ) -> None:
        """`meet` is told of the first object of each number."""
        self._signature = signature
        self._meet = meet
        self._by_id: dict[int, int] = {}
        self._by_signature: dict[object, tuple[int, weakref.ref[Any]]] = {}
        self._count = 0

    def of(self, thing: Any) -> int:
        known = self._by_id.get(id(thing))
        return self._number(thing) if known is None else known

    def _number(self, thing: Any) -> int:
        signature = self._signature(thing)
        number, holder = self._by_signature.get(signature, (-1, None))
        if holder is None or holder() is not None:
            # Nobody was like it, or somebody still is: twins that live side by side are two.
            number = self._count
            self._count += 1
            self._meet(number, thing)
        self._by_signature[signature] = number, weakref.ref(thing)
        place, by_id = id(thing), self._by_id
        by_id[place] = number
        # Another object may come to lie where this one was.
        weakref.finalize(thing, by_id.pop, place, None).atexit = False
        return number


class Clock:
    def __init__(self, torch: Any, numbers: dict[str, Numbers]) -> None:
        self.lost = 0
        self._log: list[tuple[int, int, int, int]] = []
        self._numbers = numbers
        self._thread = get_ident()
        self._grad_enabled = torch.is_grad_enabled
        self._has_loader = False

    @property
    def events(self) -> Events:
        """In order of time."""
        log = sorted(self._log, key=itemgetter(0))
        time_ns, kind, key, n = zip(*log, strict=True) if log else ((), (), (), ())
        return Events(list(time_ns), list(kind), list(key), list(n))

    @property
    def entries(self) -> int:
        return len(self._log)

    def attach(self, seams: Seams) -> None:
        seams.loader.after.append(self._pass)
        seams.batch.after.append(self._load)
        seams.move.after.append(self._move)
        seams.model.after.append(self._call)
        seams.backward.after.append(self._plain(Kind.BACKWARD_BEGIN, 0))
        seams.grad.after.append(self._plain(Kind.BACKWARD_BEGIN, 1))
        seams.zero_grad.after.append(self._optimizer(Kind.ZERO_GRAD_BEGIN))
        seams.step.after.append(self._optimizer(Kind.OPTIMIZER_BEGIN))

    def span(self, kind: int, began: int, key: int = 0, n: int = 0) -> None:
        """`kind` is the begin's; the end's is one more."""
        ended = perf_counter_ns()
        if get_ident() != self._thread:
            return  # a prefetching thread of the script's own would tangle the nesting
        log = self._log
        if len(log) >= MOST_EVENTS:
            self.lost += 2
            return
        log.append((began, kind, key, n))
        log.append((ended, kind + 1, key, n))

    # Kinds become plain numbers once: hashing and comparing an enum's members takes a call.

    def _plain(self, kind: Kind, key: int) -> After:
        number, span = int(kind), self.span
        return lambda args, result, began: span(number, began, key)

    def _optimizer(self, kind: Kind) -> After:
        number, span, key_of = int(kind), self.span, self._numbers["optimizer"].of
        return lambda args, result, began: span(number, began, key_of(args[0]))

    def _pass(self, args: tuple[Any, ...], iterator: Any, began: int) -> None:
        number = self._numbers["loader"].of(args[0])
        self._has_loader = True
        self.span(_DATA, began, number, -1)
        if iterator is not None and hasattr(iterator, "__dict__"):
            iterator._hotloop_loader = number

    def _load(self, args: tuple[Any, ...], batch: Any, began: int) -> None:
        number = getattr(args[0], "_hotloop_loader", 0)
        self.span(_DATA, began, number, -1 if batch is None else samples.count(batch))

    def _move(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self.span(_COPY, began, 0, result.nbytes if result is not None and result.is_cuda else 0)

    def _call(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        # Whether gradients were on is asked afterwards: a module leaves that as it found it.
        kind = _FORWARD if self._grad_enabled() else _NO_GRAD
        given = 0 if self._has_loader else samples.count(args[1:])
        self.span(kind, began, self._numbers["model"].of(args[0]), given)
