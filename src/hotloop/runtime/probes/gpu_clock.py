"""When things happened on the GPU: CUDA events around the spans of a few steps out of many.

They are read after the run: to ask for one earlier would wait for the device. Recording one costs
ten microseconds, so between two such windows nothing listens at all.
"""

from __future__ import annotations

from typing import Any

from hotloop.measurement import Events, GpuTimes, Kind
from hotloop.seams import After, Seam, Seams

FIRST, STEPS_ON, EVERY = 10, 6, 96
"""Counted in steps of any optimizer: with two of them some whole steps still lie inside. At first
they come sooner one after the other: a short trial may be steady only after the first of them."""


class GpuClock:
    def __init__(self, cuda: Any) -> None:
        self._cuda = cuda
        self._open: list[Any] = []
        self._marks: list[tuple[int, int, Any, Any]] = []
        """When the span began on the host, its kind, and its two events."""
        self._steps = 0
        self._begin = FIRST
        """The step with which a window begins, that is open or comes next."""
        self._recording = False

    def attach(self, seams: Seams) -> None:
        """After every probe that may end the process: a step that is not finished needs no mark."""
        self._listeners: list[tuple[Seam, After]] = [
            (seams.move, self._closing(Kind.COPY_BEGIN)),
            (seams.model, self._closing(Kind.FORWARD_BEGIN)),
            (seams.backward, self._closing(Kind.BACKWARD_BEGIN)),
            (seams.grad, self._closing(Kind.BACKWARD_BEGIN)),
            (seams.step, self._closing(Kind.OPTIMIZER_BEGIN)),
        ]
        seams.step.after.append(self._count)

    def times(self, events: Events) -> GpuTimes:
        """Waits for the device: only when the measuring is over."""
        if not self._marks:
            return GpuTimes()
        self._cuda.synchronize()
        index = {pair: i for i, pair in enumerate(zip(events.time_ns, events.kind, strict=True))}
        base = self._marks[0][2]
        found: list[tuple[int, float]] = []
        for began, kind, first, last in self._marks:
            at = index.get((began, kind))
            if at is not None:
                found.append((at, base.elapsed_time(first)))
                found.append((_end_of(events, at), base.elapsed_time(last)))
        found.sort()
        return GpuTimes(event=[at for at, _ in found], ms=[ms for _, ms in found])

    def _count(self, args: Any, result: Any, began: int) -> None:
        self._steps += 1
        if self._steps == self._begin + STEPS_ON:
            self._begin = min(2 * self._begin, self._begin + EVERY)
        recording = self._steps >= self._begin and self._cuda.is_initialized()
        if recording and not self._recording:
            self._listen()
            # Where this step ends, the first one of the window begins.
            self._open.append(self._event())
        elif self._recording and not recording:
            self._stop_listening()
        self._recording = recording

    def _listen(self) -> None:
        """At the end of the lists: some of them are being walked through at this moment."""
        for seam, closing in self._listeners:
            seam.before.append(self._opening)
            seam.after.append(closing)

    def _stop_listening(self) -> None:
        self._open.clear()
        for seam, closing in self._listeners:
            seam.before.remove(self._opening)
            seam.after.remove(closing)

    def _opening(self, args: Any, kwargs: Any) -> None:
        self._open.append(self._event())

    def _closing(self, kind: Kind) -> After:
        number = int(kind)

        def close(args: Any, result: Any, began: int) -> None:
            first = self._open.pop() if self._open else None
            last = self._event()
            if first is not None and last is not None:
                self._marks.append((began, number, first, last))

        return close

    def _event(self) -> Any:
        """None while the script captures a graph of its own, where none may be recorded."""
        if self._cuda.is_current_stream_capturing():
            return None
        event = self._cuda.Event(enable_timing=True)
        event.record()
        return event


def _end_of(events: Events, begin: int) -> int:
    """The end that belongs to a begin: the first of its kind that closes more than was opened."""
    kind, depth = events.kind[begin], 0
    for index in range(begin, len(events)):
        if events.kind[index] == kind:
            depth += 1
        elif events.kind[index] == kind + 1:
            depth -= 1
            if depth == 0:
                return index
    return begin
