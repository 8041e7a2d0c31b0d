from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hotloop.plan import Plan
from hotloop.trial.order import Glimpse, Order, Watcher
from hotloop.trial.side_by_side import Placed, launch_all
from hotloop.trial.spec import StopRule
from hotloop.trial.trial import State, Trial
from tests import builders

PATIENCE = 10.0
"""Seconds after which a test has hung."""


class Launcher:
    """Each trial goes on until it is let go, or told to stop."""

    def __init__(self, ends: Callable[[int], bool] = lambda number: True) -> None:
        self.ends = ends
        """Whether a trial comes to its end by itself, once it is let go."""
        self.going: set[int] = set()
        self.most = 0
        self.lock = threading.Lock()
        self.met = threading.Event()
        """Set by a test's watcher: from here on trials may end."""

    def launch(self, order: Order, watcher: Watcher) -> Trial:
        with self.lock:
            self.going.add(order.number)
            self.most = max(self.most, len(self.going))
        state = State.COMPLETE
        try:
            while not (self.met.wait(0.01) and self.ends(order.number)):
                watcher(Glimpse(0.0, order.number, None, b""))
        except KeyboardInterrupt:
            state = State.INTERRUPTED
        with self.lock:
            self.going.discard(order.number)
        return builders.trial(number=order.number, state=state)


def placed(tmp_path: Path, *shares: float) -> list[Placed]:
    job = builders.job(tmp_path)
    return [
        Placed(Order(number, job, Plan(), StopRule(), PATIENCE, tmp_path), share)
        for number, share in enumerate(shares, start=1)
    ]


def run(
    launcher: Launcher, watcher: Watcher, placed: list[Placed], deadline: float = math.inf
) -> list[Trial]:
    ended: list[Trial] = []
    launch_all(placed, launcher, watcher, ended.append, deadline)
    return sorted(ended, key=lambda trial: trial.number)


def when(launcher: Launcher, count: int) -> Watcher:
    """Lets them go once so many run at the same time."""

    def watch(glimpse: Glimpse) -> None:
        assert glimpse.seconds < PATIENCE
        if len(launcher.going) >= count:
            launcher.met.set()

    return watch


def test_as_many_run_at_the_same_time_as_there_is_room_for(tmp_path: Path) -> None:
    launcher = Launcher()
    trials = run(launcher, when(launcher, 3), placed(tmp_path, 0.4, 0.4, 0.4, 0.2))
    assert [trial.number for trial in trials] == [1, 2, 3, 4]
    assert launcher.most == 3  # the fourth fits beside the first two, the third does not


def test_what_needs_all_of_it_is_alone_and_not_left_out(tmp_path: Path) -> None:
    launcher = Launcher()
    trials = run(launcher, when(launcher, 1), placed(tmp_path, 1.0, 2.0))
    assert [trial.state for trial in trials] == [State.COMPLETE] * 2
    assert launcher.most == 1


def test_what_has_not_begun_when_the_time_is_over_does_not(tmp_path: Path) -> None:
    launcher = Launcher()
    limits: list[float] = []

    class Noting(Launcher):
        def launch(self, order: Order, watcher: Watcher) -> Trial:
            limits.append(order.limit_seconds)
            return super().launch(order, watcher)

    launcher = Noting()
    deadline = time.monotonic() + 0.3

    def watch(glimpse: Glimpse) -> None:
        if time.monotonic() > deadline:
            launcher.met.set()

    trials = run(launcher, watch, placed(tmp_path, 1.0, 1.0), deadline)
    assert [trial.number for trial in trials] == [1]
    assert 0 < limits[0] <= 0.3


def test_whoever_stops_it_stops_all_of_them(tmp_path: Path) -> None:
    launcher = Launcher(ends=lambda number: False)

    def interrupt(glimpse: Glimpse) -> None:
        if len(launcher.going) == 2 and glimpse.steps == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(launcher, interrupt, placed(tmp_path, 0.5, 0.5, 0.5))
    assert not launcher.going and launcher.most == 2


def test_what_a_launcher_fails_with_is_passed_on_and_the_others_are_ended(tmp_path: Path) -> None:
    class Failing(Launcher):
        def launch(self, order: Order, watcher: Watcher) -> Trial:
            if order.number == 2:
                raise OSError("no space left")
            return super().launch(order, watcher)

    launcher = Failing(ends=lambda number: False)
    with pytest.raises(OSError, match="no space"):
        run(launcher, lambda glimpse: None, placed(tmp_path, 0.5, 0.5))
    assert not launcher.going
