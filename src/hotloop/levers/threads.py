"""How many threads an operator of torch's computes with, whatever the script says.

On a CPU the threads of an operator share the cores with each other and with loader workers: too few
leave cores idle, and with too many each operator waits until the last of them had its turn.

OMP_NUM_THREADS is left alone on purpose. Workers and every other process of the job would inherit
it, and so would numpy and OpenCV there; and a script that sets the number itself wins over it. What
is set in torch holds for torch in the job's own process, and nowhere else.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, counted, refuse

if TYPE_CHECKING:
    from hotloop.seams import Seams

MOST_THREADS = 1024
WAITING = 0.02
CROWDED = 1.5
"""Threads and workers a core. Up to that, one more does little harm."""
LOST = 0.8
"""Of the computing, at most: assumed, and about what eight threads a core were seen to lose. The
threads of an operator end together, and with several on a core each operator waits until the last
of them had its turn."""
PARALLEL = 0.85
"""Of the computing, what gets faster with threads. Assumed: Python and small operators do not."""


@dataclass
class Threads(Lever):
    name = "threads"
    summary = "as many threads an operator as there are cores for"
    group = Group.PROCESS
    effect = Effect.SAME_MATH
    not_for_memory = "threads that compute take next to no memory"

    threads: int = 0
    """0: one for each core that the process may use."""

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._thread = 0
        self._number = self._wanted = self._seen = self._passes = 0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        cores, has = _cores(seen), seen.measurement.inventory.threads
        counts = dict.fromkeys((max(cores - _workers(seen), 1), cores))
        return [{"threads": count} for count in counts if count != has]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        has, workers, cores = seen.measurement.inventory.threads, _workers(seen), _cores(seen)
        computing = seen.share("forward", "backward", "optimizer")
        if not has:
            return refuse("it is not known how many threads compute")
        if seen.on_gpu:
            computing = seen.share("data")
            if computing < WAITING:
                return refuse("the GPU does the computing")
            if workers:
                return refuse("workers load the data, with a thread each, and the GPU computes")
        free = max(cores - workers, 1)
        if has < free:
            return Expectation(computing * PARALLEL * (1 - has / free))
        if has > free and has + workers >= CROWDED * seen.cores:
            return Expectation(computing * LOST * (1 - seen.cores / (has + workers)))
        beside = f" beside {counted(workers, 'worker')}" if workers else ""
        on = f"on {counted(seen.cores, 'core')}{beside}"
        return refuse(f"torch computes with {counted(has, 'thread')} {on} already")

    def problem(self) -> str:
        if 0 <= self.threads <= MOST_THREADS:
            return ""
        return f"threads must be from 0 to {MOST_THREADS}, not {self.threads}"

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        self._thread = threading.get_ident()
        self._wanted = torch.get_num_threads()
        self._number = self.threads or usable_cores()
        torch.set_num_threads(self._number)
        seams.threads.before.append(self._override)
        seams.backward.after.append(self._look)  # weights may be updated by hand

    def receipt(self) -> Receipt:
        if not self._passes:
            return self.not_applied("nothing was differentiated")
        if self._seen != self._number:
            return self.not_applied(
                f"torch computed with {counted(self._seen, 'thread')} all the same"
            )
        if self._wanted == self._number:
            return self.not_applied(f"the job has {counted(self._number, 'thread')} by itself")
        return self.applied(threads=self._seen, wanted=self._wanted)

    def _override(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """What the script asks for, but not what torch's own thread that pins memory does.

        That one asks for a single thread, which holds for nobody but itself. A worker asks for the
        same, in a process where nobody of us listens any more.
        """
        if threading.get_ident() == self._thread:
            self._wanted = int(kwargs["threads"])
            kwargs["threads"] = self._number

    def _look(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._passes += 1
        self._seen = self._torch.get_num_threads()


def _workers(seen: Seen) -> int:
    return seen.loader.workers if seen.loader else 0


def _cores(seen: Seen) -> int:
    """Where two share all that computes, torch takes one of the two, and rightly so."""
    return seen.physical_cores or seen.cores


def usable_cores() -> int:
    """By this process."""
    has = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has else os.cpu_count() or 1
