"""Copies of a loader's batches that are on their way to the GPU before the script asks for them.

Of which tensors, and how, is learned from what the script does with its first batches: a copy is
the script's own call, made earlier and on a stream of its own.
"""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

LEARNED = 2
"""Batches in which a tensor was moved the same way, before its copy is begun ahead."""
IN_VAIN = 3
"""Copies of the tensor at one place that were of no use, after which no more are made."""


class Copier(Protocol):
    """How copies are made beside what the GPU computes. CUDA's, or a fake where there is no GPU."""

    def begin(self, device: Any, copies: Sequence[Callable[[], Any]]) -> tuple[list[Any], Any]:
        """All of them, begun; and by what is known that they are done."""

    def hand_over(self, copy: Any, done: Any) -> None:
        """Whatever the script does with it from here on waits for it, on the GPU."""


class CudaCopier:
    def __init__(self, torch: Any) -> None:
        self._cuda = torch.cuda
        self._streams: dict[Any, Any] = {}

    def begin(self, device: Any, copies: Sequence[Callable[[], Any]]) -> tuple[list[Any], Any]:
        """What is copied lies on the host: nothing that the GPU computes need be waited for."""
        stream = self._streams.get(device)
        if stream is None:
            stream = self._streams[device] = self._cuda.Stream(device)
        with self._cuda.stream(stream):
            return [copy() for copy in copies], stream.record_event()

    def hand_over(self, copy: Any, done: Any) -> None:
        stream = self._cuda.current_stream(copy.device)
        stream.wait_event(done)
        copy.record_stream(stream)  # its memory is not given away before the script is done with it


@dataclass(frozen=True)
class Call:
    """How a script moves a tensor, but for whether it waits."""

    by: Any
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]

    def __call__(self, tensor: Any) -> Any:
        return self.by(tensor, *self.args, **{**dict(self.kwargs), "non_blocking": True})


@dataclass
class Habit:
    """What becomes of the tensor at one place of each batch."""

    call: Call
    device: Any = None
    times: int = 0


@dataclass(frozen=True)
class Flight:
    """A copy under way. Keeps the original, whose memory is being read."""

    tensor: Any
    version: int
    """How often it had been changed in place."""
    place: int
    call: Call
    copy: Any
    done: Any


@dataclass
class Source:
    """A loader, as far as its batches go to a GPU."""

    habits: dict[int, Habit] = field(default_factory=dict)
    """By the place of a tensor in a batch."""
    flights: dict[int, Flight] = field(default_factory=dict)
    """By the tensor's identity."""
    handed: dict[int, tuple[weakref.ref[Any], int]] = field(default_factory=dict)
    """The tensors of the last batch that the script has not moved yet, and their places."""
    size: int = 0
    """Tensors in a batch."""
    in_vain: Counter[int] = field(default_factory=Counter)

    def deliver(self, batch: Sequence[Any]) -> int:
        """A batch has reached the script. How many copies of the one before nobody asked for."""
        if len(batch) != self.size:
            self.habits.clear()  # another kind of batch
        self.size = len(batch)
        self.handed = {id(tensor): (weakref.ref(tensor), n) for n, tensor in enumerate(batch)}
        return self.give_up(keep=self.handed.keys())

    def give_up(self, keep: Collection[int] = ()) -> int:
        """Copies that nobody has asked for."""
        unused = [tensor for tensor in self.flights if tensor not in keep]
        for tensor in unused:
            self.in_vain[self.flights.pop(tensor).place] += 1
        return len(unused)

    def worth_copying(self, batch: Sequence[Any]) -> list[tuple[int, Any, Habit]]:
        """Places, tensors and what the script will do with them, of a batch that is not moved."""
        if len(batch) != self.size:
            return []
        found = [(place, batch[place], habit) for place, habit in self.habits.items()]
        return [
            (place, tensor, habit)
            for place, tensor, habit in found
            if habit.device is not None
            and habit.times >= LEARNED
            and self.in_vain[place] < IN_VAIN
            and id(tensor) not in self.flights
        ]

    def move(self, tensor: Any, call: Call | None) -> tuple[Habit | None, Flight | None]:
        """The script moves a tensor: what it is used to do, and the copy that is under way."""
        known, place = self.handed.get(id(tensor), (None, 0))
        if known is None or known() is not tensor:
            return None, None  # no tensor of the last batch, or not for the first time
        del self.handed[id(tensor)]
        flight = self.flights.pop(id(tensor), None)
        if call is None:
            self.habits.pop(place, None)
            return None, flight
        habit = self.habits.get(place)
        if habit is None or habit.call != call:
            habit = self.habits[place] = Habit(call)
        habit.times += 1
        return habit, flight


def waiting(iterator: Any) -> Any:
    """The batch that the loader would hand out next, if a worker has it ready; None if not.

    It is looked at and not taken, so that nothing is drawn before the script draws it.
    """
    queue: Any = getattr(iterator, "_data_queue", None)
    number = getattr(iterator, "_rcvd_idx", None)
    if number is None or not hasattr(queue, "mutex"):
        return None  # no workers, or nobody who pins what they have made
    early = iterator._task_info.get(number, ())
    if len(early) > 1:
        return early[1]
    with queue.mutex:
        ready = list(queue.queue)
    return next((entry[1] for entry in ready if entry[0] == number), None)
