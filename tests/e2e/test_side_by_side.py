"""Real trials at the same time: each comes to what it would alone, and none outlives a stop."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

from hotloop.job import ScriptJob
from hotloop.plan import Plan
from hotloop.trial.launch import ProcessLauncher
from hotloop.trial.order import Glimpse, Order
from hotloop.trial.side_by_side import Placed, launch_all
from hotloop.trial.spec import StopRule
from hotloop.trial.trial import State, Trial

from .conftest import LONG, TRAIN

pytestmark = pytest.mark.e2e

SAVES = TRAIN.replace("    step()\n", "    step(); open('kept.txt', 'a').write('x')\n")


def placed(folder: Path, source: str, steps: int, count: int = 2) -> list[Placed]:
    project = folder / "project"
    project.mkdir()
    (project / "train.py").write_text(source)
    job = ScriptJob("train.py", False, (), sys.executable, str(project))
    stop = StopRule(warm_up=1, steps=steps)
    places = [folder / "study" / f"trial-{number}" for number in range(1, count + 1)]
    return [
        Placed(Order(number, job, Plan(), stop, LONG, place), 0.5)
        for number, place in enumerate(places, start=1)
    ]


def children() -> set[int]:
    return {child.pid for child in psutil.Process().children()}


def test_each_comes_to_what_it_would_alone(tmp_path: Path) -> None:
    before, most = children(), 0

    def watch(glimpse: Glimpse) -> None:
        nonlocal most
        most = max(most, len(children() - before))

    trials: list[Trial] = []
    launch_all(placed(tmp_path, SAVES, steps=20), ProcessLauncher(), watch, trials.append)
    assert [trial.state for trial in trials] == [State.COMPLETE] * 2
    losses = [trial.measurement.losses.value for trial in trials if trial.measurement]
    assert len(losses) == 2 and all(len(one) >= 20 for one in losses)
    assert most == 2
    # What each of them writes stays its own.
    assert not (tmp_path / "project" / "kept.txt").exists()


def test_whoever_stops_them_leaves_nothing_running(tmp_path: Path) -> None:
    before = children()
    seen: set[int] = set()

    def stop(glimpse: Glimpse) -> None:
        seen.update(children() - before)
        if glimpse.steps > 10 and len(children() - before) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        endless = placed(tmp_path, TRAIN, steps=10**9)
        launch_all(endless, ProcessLauncher(), stop, lambda trial: None)
    assert len(seen) == 2
    assert not [pid for pid in seen if psutil.pid_exists(pid)]
