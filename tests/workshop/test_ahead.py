from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.plan import LeverSetting, Plan
from hotloop.trial.order import Glimpse, Order, Watcher
from hotloop.trial.side_by_side import Placed
from hotloop.trial.spec import StopRule
from hotloop.trial.trial import State, Trial
from hotloop.workshop.ahead import Ahead
from tests import builders

FUSED = Plan((LeverSetting("fused_optimizer", {}),))


class Launcher:
    """Each says that it took ten seconds; those of this purpose fail."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails

    def launch(self, order: Order, watcher: Watcher) -> Trial:
        watcher(Glimpse(0.0, 1, None, b""))
        state = State.OUT_OF_MEMORY if order.purpose == self.fails else State.COMPLETE
        return builders.trial(plan=order.plan, purpose=order.purpose, state=state, seconds=10.0)


def placed(folder: Path, *purposes: str) -> list[Placed]:
    job = builders.job(folder)
    return [
        Placed(Order(1, job, FUSED, StopRule(), 60.0, folder, purpose), 0.1) for purpose in purposes
    ]


def ignore(glimpse: Glimpse) -> None: ...


def test_each_is_handed_out_once(tmp_path: Path) -> None:
    ahead = Ahead()
    ahead.run(placed(tmp_path, "candidate", "reseeded 1"), Launcher(), ignore)
    assert ahead.has(FUSED, "candidate") and not ahead.has(Plan(), "candidate")
    taken = ahead.take(FUSED, "candidate")
    assert taken is not None and taken.purpose == "candidate"
    assert ahead.take(FUSED, "candidate") is None
    assert [trial.purpose for trial in ahead.trials] == ["reseeded 1"]


def test_together_they_cost_what_was_waited_for_them(tmp_path: Path) -> None:
    ahead = Ahead()
    ahead.run(placed(tmp_path, "a", "b", "c"), Launcher(fails="b"), ignore)
    assert [trial.seconds for trial in ahead.trials] == [10.0, 10.0]  # as it was
    assert 0 < ahead.cost < 5.0
    assert ahead.cost == pytest.approx(3 * ahead.trials[0].cost)  # also what came to nothing


def test_what_is_forgotten_has_cost_something(tmp_path: Path) -> None:
    ahead = Ahead()
    ahead.run(placed(tmp_path, "a", "b"), Launcher(), ignore)
    before = ahead.cost
    ahead.forget()
    assert not ahead.trials and ahead.cost == before


def test_what_has_ended_is_kept_when_the_rest_is_stopped(tmp_path: Path) -> None:
    ahead, saved = Ahead(), list[int]()

    class Endless(Launcher):
        def launch(self, order: Order, watcher: Watcher) -> Trial:
            while order.purpose == "b":
                watcher(Glimpse(0.0, 1, None, b""))
            return super().launch(order, watcher)

    def stop(glimpse: Glimpse) -> None:
        if saved:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ahead.run(
            placed(tmp_path, "a", "b"),
            Endless(),
            stop,
            save=lambda: saved.append(len(ahead.trials)),
        )
    assert [trial.purpose for trial in ahead.trials] == ["a"]
    assert saved == [1, 1]
