"""Where a thread is, looked up some hundred times a second by another."""

from __future__ import annotations

import sys
import threading
from time import perf_counter_ns

from hotloop.inspection import Samples
from hotloop.runtime.look.frames import Frames, Places, is_of_ours, places

EVERY_SECONDS = 0.003
MOST_SAMPLES = 20_000
PATIENCE = 1e-5
"""Seconds until a running thread hands over Python's lock. With the usual 5 ms a look would wait
for the next call that gives the lock away by itself, and find that line every time."""

LOOKS = 5
"""At the same moment, until one of them is whole."""


class Sampler:
    """Watches the thread that made it.

    It needs Python's lock for a look, and a call that keeps the lock delays it. So each look counts
    for the time since the one before: what delayed it is what is found running afterwards.
    """

    def __init__(self, every: float = EVERY_SECONDS) -> None:
        self._every = every
        self._watched = threading.get_ident()
        self._frames = Frames()
        self._stacks: dict[tuple[int, ...], int] = {}
        self._samples = Samples(frames=self._frames.known)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._stop.clear()
        self._patience = sys.getswitchinterval()
        sys.setswitchinterval(PATIENCE)
        self._thread = threading.Thread(target=self._run, name="hotloop-sampler", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._thread is not None:
            self._stop.set()
            self._thread.join()
            self._thread = None
            sys.setswitchinterval(self._patience)

    @property
    def samples(self) -> Samples:
        """Once it has stopped."""
        return self._samples

    def by_stack(self) -> Samples:
        """While it goes on: equal ones as one, without their times."""
        with self._lock:
            seen = list(zip(self._samples.stack, self._samples.weight_ns, strict=True))
            frames, stacks = list(self._samples.frames), list(self._samples.stacks)
        spent = [0] * len(stacks)
        for stack, weight in seen:
            spent[stack] += weight
        return Samples(frames, stacks, [0] * len(stacks), list(range(len(stacks))), spent)

    def _run(self) -> None:
        before = perf_counter_ns()
        while not self._stop.wait(self._every) and len(self._samples.stack) < MOST_SAMPLES:
            seen = self._look()
            if seen is not None:
                now, found = seen
                if not is_of_ours(found):
                    self._note(tuple(self._frames.numbered(found)), now, now - before)
                before = now

    def _look(self) -> tuple[int, Places] | None:
        """When, and what ran. None: each time the thread went on meanwhile.

        It may, for whoever has Python's lock is asked for it after `PATIENCE`. What was seen of its
        frames before that and after would be a stack that never was.
        """
        for _ in range(LOOKS):
            frame = sys._current_frames().get(self._watched)
            if frame is None:
                return None
            reached, now = frame.f_lasti, perf_counter_ns()
            found = places(frame)
            if sys._current_frames().get(self._watched) is frame and frame.f_lasti == reached:
                return now, found
        return None

    def _note(self, stack: tuple[int, ...], now: int, weight: int) -> None:
        samples = self._samples
        with self._lock:
            number = self._stacks.get(stack)
            if number is None:
                number = self._stacks[stack] = len(samples.stacks)
                samples.stacks.append(list(stack))
            samples.time_ns.append(now)
            samples.stack.append(number)
            samples.weight_ns.append(weight)
