"""One pass of a model, recorded with inputs and results that lie still, and replayed.

A replay writes over what the one before has left. So it is asked first whether anybody still holds
on to that: a second forward pass before the first was differentiated, gradients that are added up.
Then the pass runs as it is. Nothing has to be assumed of the script.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.levers.replaying import Recorder, Tally, said_by

Boxed = Callable[[list[Any]], Any]
"""Takes its inputs as a list, which it may empty: what is not needed any more is freed."""
MOST = 4
"""Recordings of a pass. Weights that move more often than that are not worth one."""


@dataclass
class _Recording:
    places: tuple[int, ...]
    """Of the inputs that lie still."""
    replay: Callable[[], None]
    buffers: list[Any]
    """Where the other inputs are copied."""
    results: list[Any]
    held: list[tuple[int, int]]
    """Memory that a replay writes and others may hold: which, and by how many it is held when
    nobody does."""


class StillGraphs:
    """Stands in for a pass."""

    def __init__(
        self,
        torch: Any,
        recorder: Recorder,
        run: Boxed,
        still: Sequence[int],
        handed: int,
        may_copy: bool,
    ) -> None:
        """`handed`: results, the first so many, that are handed out as copies. `may_copy`: all of
        them may be, once somebody was seen to hold on to them."""
        self.tally = Tally()
        self._torch = torch
        self._recorder = recorder
        self._run = run
        self._still = frozenset(still)
        self._handed: int | None = handed
        self._may_copy = may_copy
        self._recording: _Recording | None = None
        self._met: tuple[int, ...] | None = None
        self._is_over = False

    def let_go(self) -> None:
        """Of the memory that it holds, for good: the model is gone. torch never forgets what it has
        captured of one."""
        self._recording, self._is_over = None, True

    def __call__(self, given: list[Any]) -> Any:
        if self._is_over or self.tally.reason or not self._recorder.is_free:
            return self._as_it_is(given)
        places = tuple(given[index].data_ptr() for index in sorted(self._still))
        known = self._recording
        if known is None or known.places != places:
            known = self._record(given, places)
        elif self._is_held(known):
            self._hand_out_copies()
            known = None
        if known is None:
            return self._as_it_is(given)
        if known.buffers:
            self._torch._foreach_copy_(known.buffers, self._moving(given))
        known.replay()
        self.tally.replayed += 1
        return self._handed_out(known.results)

    def _as_it_is(self, given: list[Any]) -> Any:
        self.tally.others += 1
        return self._run(given)

    def _moving(self, given: list[Any]) -> list[Any]:
        return [each for index, each in enumerate(given) if index not in self._still]

    def _record(self, given: list[Any], places: tuple[int, ...]) -> _Recording | None:
        """At the second call with inputs that lie where they lay: by the first all is warm."""
        if self._met != places or self.tally.recorded == MOST:
            self._met = places
            return None
        if not all(self._recorder.bears(each.detach()) for each in given):  # a parameter, too
            self.tally.reason = "its inputs are tensors of a kind of their own"
            return None
        self._recording = None  # before another takes its memory
        inputs = [
            each if index in self._still else each.clone() for index, each in enumerate(given)
        ]
        buffers = self._moving(inputs)
        try:
            replay, results = self._recorder.record(lambda: [*self._run([*inputs])])
        except Exception as error:  # whatever a recording does not bear
            self.tally.reason = f"it cannot be captured: {said_by(error)}"
            return None
        self.tally.recorded += 1
        gc.collect()  # what is left of capturing would be taken for somebody who holds on
        held = [(place, self._count(place)) for place in self._written(results, given)]
        self._recording = _Recording(places, replay, buffers, results, held)
        return self._recording

    def _written(self, results: Sequence[Any], given: Sequence[Any]) -> list[int]:
        """Memory of results that a replay writes, and that is not handed out as a copy: weights
        come back as they were given."""
        if self._handed is None:
            return []
        own = {given[index].untyped_storage()._cdata for index in self._still}
        kept = [each for each in results[self._handed :] if self._is_tensor(each)]
        return [*{each.untyped_storage()._cdata for each in kept} - own]

    def _count(self, place: int) -> int:
        return int(self._torch._C._storage_Use_Count(place))

    def _is_held(self, known: _Recording) -> bool:
        return any(self._count(place) > usual for place, usual in known.held)

    def _hand_out_copies(self) -> None:
        """From now on, and from memory of its own: what is held lies in the recording's."""
        if self._may_copy:
            self._handed, self._recording, self._met = None, None, None

    def _handed_out(self, results: Sequence[Any]) -> list[Any]:
        """Each as a tensor of its own, of which autograd may make what it likes."""
        count = len(results) if self._handed is None else self._handed
        return [
            (each.clone() if index < count else each.detach()) if self._is_tensor(each) else each
            for index, each in enumerate(results)
        ]

    def _is_tensor(self, each: Any) -> bool:
        return isinstance(each, self._torch.Tensor)
