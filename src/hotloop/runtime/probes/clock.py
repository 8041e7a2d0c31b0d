"""When everything happened: one entry in a log for each span, and nothing else.

A span is logged when it ends. Inner spans end before outer ones, so the log is put in order of time
when it is read.

Each listener is one function that calls nothing written in Python: between two calls into torch a
function's code is no longer in the processor's caches, and each one called costs microseconds. So
some lines stand here several times on purpose.
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

MOST_SPANS = 200_000

# As plain numbers: hashing and comparing an enum's members takes a call.
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
        self.by_id: dict[int, int] = {}
        """For those who cannot afford a call: the numbers of objects that have one."""
        self._signature = signature
        self._meet = meet
        self._by_signature: dict[object, tuple[int, weakref.ref[Any]]] = {}
        self._known: list[weakref.ref[Any]] = []
        self._count = 0

    def of(self, thing: Any) -> int:
        known = self.by_id.get(id(thing))
        return self._number(thing) if known is None else known

    def living(self) -> list[Any]:
        """Those that the script still holds."""
        known = (reference() for reference in self._known)
        return [thing for thing in known if thing is not None]

    def _number(self, thing: Any) -> int:
        signature = self._signature(thing)
        number, holder = self._by_signature.get(signature, (-1, None))
        if holder is None or holder() is not None:
            # Nobody was like it, or somebody still is: twins that live side by side are two.
            number = self._count
            self._count += 1
            self._meet(number, thing)
        self._by_signature[signature] = number, weakref.ref(thing)
        self._known.append(weakref.ref(thing))
        place, by_id = id(thing), self.by_id
        by_id[place] = number
        # Another object may come to lie where this one was.
        weakref.finalize(thing, by_id.pop, place, None).atexit = False
        return number


class Clock:
    def __init__(self, torch: Any, numbers: dict[str, Numbers]) -> None:
        self.lost = 0
        self._log: list[tuple[int, int, int, int, int]] = []
        """When a span began and ended, its kind, which it was and how much."""
        self._numbers = numbers
        self._thread = get_ident()
        self._grad_enabled = torch.is_grad_enabled
        self._has_loader = False

    @property
    def events(self) -> Events:
        """In order of time; a begin's kind is the span's, its end's is one more."""
        begun = [(began, kind, key, n) for began, _, kind, key, n in self._log]
        ended = [(ended, kind + 1, key, n) for _, ended, kind, key, n in self._log]
        both = sorted(begun + ended, key=itemgetter(0))
        time_ns, kind, key, n = zip(*both, strict=True) if both else ((), (), (), ())
        return Events(list(time_ns), list(kind), list(key), list(n))

    @property
    def entries(self) -> int:
        return 2 * len(self._log)

    def attach(self, seams: Seams) -> None:
        seams.loader.after.append(self._pass)
        seams.batch.after.append(self._load)
        seams.move.after.append(self._move)
        seams.model.after.append(self._call)
        seams.backward.after.append(self._plain(int(Kind.BACKWARD_BEGIN), 0))
        seams.grad.after.append(self._plain(int(Kind.BACKWARD_BEGIN), 1))
        seams.zero_grad.after.append(self._plain(int(Kind.ZERO_GRAD_BEGIN), 0))
        seams.step.after.append(self._optimizer(int(Kind.OPTIMIZER_BEGIN)))

    # In each: a prefetching thread of the script's own would tangle the nesting, and is left out.

    def _plain(self, kind: int, key: int) -> After:
        log, thread = self._log, self._thread

        def ended(args: tuple[Any, ...], result: Any, began: int) -> None:
            now = perf_counter_ns()
            if get_ident() == thread:
                if len(log) < MOST_SPANS:
                    log.append((began, now, kind, key, 0))
                else:
                    self.lost += 2

        return ended

    def _optimizer(self, kind: int) -> After:
        log, thread, numbers = self._log, self._thread, self._numbers["optimizer"]
        known = numbers.by_id

        def ended(args: tuple[Any, ...], result: Any, began: int) -> None:
            now = perf_counter_ns()
            if get_ident() == thread:
                key = known.get(id(args[0]))
                if key is None:
                    key = numbers.of(args[0])
                if len(log) < MOST_SPANS:
                    log.append((began, now, kind, key, 0))
                else:
                    self.lost += 2

        return ended

    def _pass(self, args: tuple[Any, ...], iterator: Any, began: int) -> None:
        now = perf_counter_ns()
        number = self._numbers["loader"].of(args[0])
        self._has_loader = True
        if iterator is not None and hasattr(iterator, "__dict__"):
            iterator._hotloop_loader = number
            iterator._hotloop_drawn = samples.in_pass(iterator)
        if get_ident() == self._thread:
            if len(self._log) < MOST_SPANS:
                self._log.append((began, now, _DATA, number, -1))
            else:
                self.lost += 2

    def _load(self, args: tuple[Any, ...], batch: Any, began: int) -> None:
        now = perf_counter_ns()
        if get_ident() == self._thread:
            number = getattr(args[0], "_hotloop_loader", 0)
            of = getattr(args[0], "_hotloop_drawn", None)
            held = -1 if batch is None else samples.drawn(args[0], of, batch)
            if len(self._log) < MOST_SPANS:
                self._log.append((began, now, _DATA, number, held))
            else:
                self.lost += 2

    def _move(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        now = perf_counter_ns()
        moved = result.nbytes if result is not None and result.is_cuda else 0
        if get_ident() == self._thread:
            if len(self._log) < MOST_SPANS:
                self._log.append((began, now, _COPY, 0, moved))
            else:
                self.lost += 2

    def _call(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        # Whether gradients were on is asked afterwards: a module leaves that as it found it.
        now = perf_counter_ns()
        kind = _FORWARD if self._grad_enabled() else _NO_GRAD
        numbers = self._numbers["model"]
        key = numbers.by_id.get(id(args[0]))
        if key is None:
            key = numbers.of(args[0])
        given = 0 if self._has_loader else samples.given(args[1:])
        if get_ident() == self._thread:
            if len(self._log) < MOST_SPANS:
                self._log.append((began, now, kind, key, given))
            else:
                self.lost += 2
