from __future__ import annotations

from hotloop.plan import Plan
from hotloop.trial.trial import State
from hotloop.workshop.earlier import Earlier
from tests import builders


def test_trials_are_taken_once_in_their_order_and_none_that_was_interrupted() -> None:
    stopped = builders.trial(purpose="proof", seconds=1.0, state=State.INTERRUPTED)
    whole = [builders.trial(purpose="proof", seconds=seconds) for seconds in (5.0, 9.0)]
    earlier = Earlier([stopped, *whole])
    assert earlier.cost == 14.0 and earlier.has(Plan(), "proof")
    taken = [earlier.take(Plan(), "proof") for _ in range(3)]
    assert [one.seconds if one else None for one in taken] == [5.0, 9.0, None]
    assert not earlier.has(Plan(), "proof")


def test_one_that_is_tied_to_something_else_is_left() -> None:
    earlier = Earlier([builders.trial(purpose="candidate", tied_to="reference-1")])
    assert earlier.take(Plan(), "candidate", "reference-2") is None
    assert earlier.take(Plan(), "candidate", "reference-1") is not None
