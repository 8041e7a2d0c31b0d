from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.plan import LeverSetting, Plan
from hotloop.trial.fake import FakeLauncher
from hotloop.trial.order import Glimpse, Order
from hotloop.trial.spec import StopRule
from hotloop.trial.trial import State
from tests.builders import job, trial


class Watching:
    def __init__(self) -> None:
        self.glimpses: list[Glimpse] = []

    def __call__(self, glimpse: Glimpse) -> None:
        self.glimpses.append(glimpse)


def order(number: int, tmp_path: Path) -> Order:
    plan = Plan(levers=(LeverSetting("fused", {"n": number}),))
    return Order(number, job(), plan, StopRule(), 60.0, tmp_path)


def test_hands_out_its_trials_as_the_orders_answer(tmp_path: Path) -> None:
    launcher = FakeLauncher([trial(seconds=1.5), trial(state=State.CRASHED)])
    watching = Watching()
    first = launcher.launch(order(3, tmp_path), watching)
    second = launcher.launch(order(4, tmp_path), watching)
    assert (first.number, first.state, first.plan) == (3, State.COMPLETE, order(3, tmp_path).plan)
    assert (second.number, second.state) == (4, State.CRASHED)
    assert launcher.orders == [order(3, tmp_path), order(4, tmp_path)]
    assert [glimpse.seconds for glimpse in watching.glimpses] == [1.5, 3.5]


def test_has_no_more_than_it_was_given(tmp_path: Path) -> None:
    with pytest.raises(StopIteration):
        FakeLauncher([]).launch(order(1, tmp_path), Watching())
