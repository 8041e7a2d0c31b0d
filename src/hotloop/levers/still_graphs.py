"""One pass of a model, recorded with inputs and results that lie still, and replayed.

A replay writes over what the one before has left. So it is asked first whether anybody still holds
on to that: a second forward pass before the first was differentiated, gradients that are added up.
Then the pass runs as it is.
"""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.levers.replaying import Recorder, Tally, said_by

Boxed = Callable[[list[Any]], Any]
"""Takes its inputs as a list, which it may empty: what is not needed any more is freed."""
Places = tuple[int, ...]
"""Of the inputs that lie still."""
KEPT = 2
"""Recordings of a pass at a time: what it is given may lie in one of two places by turns."""
RECORDINGS = 4
"""At all. Weights that move more often than that are not worth one."""
REMEMBERED = 8
"""Places that were met last."""


@dataclass
class _Recording:
    replay: Callable[[], None]
    buffers: list[Any]
    """Where the inputs that move are copied."""
    results: list[Any]
    copied: list[int]
    """Those of the results that are handed out as copies."""
    held: list[tuple[int, int]]
    """Memory of the others that a replay writes: which, and by how many it is held when nobody
    does."""


class StillGraphs:
    """Stands in for a pass."""

    def __init__(
        self, torch: Any, recorder: Recorder, run: Boxed, still: Sequence[int], handed: int | None
    ) -> None:
        """`handed`: results, the first so many, that the script is handed, which may hold on to
        them. None: gradients, which autograd commonly takes and lets go before the next pass."""
        self.tally = Tally()
        self._torch = torch
        self._recorder = recorder
        self._run = run
        self._still = frozenset(still)
        self._handed = handed
        self._are_held = False
        """Whether somebody was seen to hold on to gradients: then all are handed out as copies."""
        self._recordings: dict[Places, _Recording] = {}
        self._met: deque[Places] = deque(maxlen=REMEMBERED)
        self._is_over = False

    def __call__(self, given: list[Any]) -> Any:
        is_vain = self._is_over or (self.tally.reason and not self._recordings)
        if is_vain or not self._recorder.is_free:
            return self._as_it_is(given)
        places = tuple(given[index].data_ptr() for index in sorted(self._still))
        known = self._recordings.get(places)
        if known is None:
            known = self._recorded(given, places)
        elif self._is_held(known):
            self._hand_out_copies()
            known = None
        if known is None:
            return self._as_it_is(given)
        if known.buffers:
            self._torch._foreach_copy_(known.buffers, self._moving(given))
        known.replay()
        self.tally.replayed += 1
        return self._handed_out(known)

    def forget(self) -> None:
        """What was recorded: it may be recorded again."""
        self._recordings.clear()
        self._met.clear()

    def let_go(self) -> None:
        """Of the memory that it holds, for good: the model is gone. torch never forgets what it has
        captured of one."""
        self.forget()
        self._is_over = True

    def _as_it_is(self, given: list[Any]) -> Any:
        self.tally.others += 1
        return self._run(given)

    def _moving(self, given: list[Any]) -> list[Any]:
        return [each for index, each in enumerate(given) if index not in self._still]

    def _recorded(self, given: list[Any], places: Places) -> _Recording | None:
        """At the second call with inputs that lie where they lay: by the first all is warm."""
        if self.tally.reason or self.tally.recorded == RECORDINGS:
            return None
        if places not in self._met:
            self._met.append(places)
            return None
        if len(self._recordings) == KEPT:  # before another takes memory
            del self._recordings[next(iter(self._recordings))]
        try:
            made = self._record(given)
        except Exception as error:  # whatever a recording does not bear
            self.tally.reason = f"it cannot be captured: {said_by(error)}"
            return None
        self._recordings[places] = made
        self.tally.recorded += 1
        return made

    def _record(self, given: list[Any]) -> _Recording:
        self._must_bear(given, "inputs")
        inputs = [
            each if index in self._still else each.clone() for index, each in enumerate(given)
        ]
        buffers = self._moving(inputs)
        replay, results = self._recorder.record(lambda: [*self._run([*inputs])])
        self._must_bear(results, "results")
        gc.collect()  # what is left of capturing would be taken for somebody who holds on
        own = {_memory(given[index]) for index in self._still}
        copied = self._copied(results, own)
        # Weights come back as they were given: no replay writes them.
        kept = [each for index, each in enumerate(results) if index not in copied]
        written = {_memory(each) for each in kept if self._is_tensor(each)} - own
        held = [(place, self._count(place)) for place in written]
        return _Recording(replay, buffers, results, copied, held)

    def _must_bear(self, tensors: Sequence[Any], what: str) -> None:
        if not all(
            self._recorder.bears(each.detach()) for each in tensors if self._is_tensor(each)
        ):
            raise TypeError(f"its {what} are tensors of a kind of their own")

    def _copied(self, results: Sequence[Any], own: set[int]) -> list[int]:
        """Autograd may take a gradient for a parameter's own, to be written to. So those that share
        their memory, with each other or with what was given, cannot be handed out as they lie."""
        tensors = [index for index, each in enumerate(results) if self._is_tensor(each)]
        if self._handed is not None:
            return [index for index in tensors if index < self._handed]
        if self._are_held:
            return tensors
        found, seen = [], set(own)
        for index in tensors:
            if _memory(results[index]) in seen:
                found.append(index)
            seen.add(_memory(results[index]))
        return found

    def _count(self, place: int) -> int:
        return int(self._torch._C._storage_Use_Count(place))

    def _is_held(self, known: _Recording) -> bool:
        return any(self._count(place) > usual for place, usual in known.held)

    def _hand_out_copies(self) -> None:
        """From now on, and of memory of its own: what is held lies in the recording's."""
        if self._handed is None:
            self._are_held = True
            self.forget()

    def _handed_out(self, known: _Recording) -> list[Any]:
        """Each as a tensor of its own, of which autograd may make what it likes."""
        made = [each.detach() if self._is_tensor(each) else each for each in known.results]
        if known.copied:
            lying = [known.results[index] for index in known.copied]
            copies = [self._torch.empty_like(each) for each in lying]
            self._torch._foreach_copy_(copies, lying)
            for index, copy in zip(known.copied, copies, strict=True):
                made[index] = copy
        return made

    def _is_tensor(self, each: Any) -> bool:
        return isinstance(each, self._torch.Tensor)


def _memory(tensor: Any) -> int:
    return int(tensor.untyped_storage()._cdata)
