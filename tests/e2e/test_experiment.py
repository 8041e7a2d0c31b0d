"""`hotloop experiment` in real processes: to its end, and stopped."""

from __future__ import annotations

import json
import signal

import pytest

from tests.e2e.conftest import Desk, until

pytestmark = pytest.mark.e2e

QUICK = ("--device", "cpu", "--runs", "1", "--steps", "3", "--batch-size", "2")


def test_one_batch_whole_and_in_two_passes(desk: Desk) -> None:
    desk.env["OMP_NUM_THREADS"] = "1"
    ended = desk.hotloop("experiment", "accumulation", *QUICK)
    assert ended.code == 0, ended
    assert "All learn the same over 6 steps" in ended.out
    told = json.loads((desk.project / "lab" / "results" / "accumulation.json").read_text())
    assert [one["case"]["label"] for one in told["measured"]] == ["2", "1"]
    assert all(run["step"] > 0 for one in told["measured"] for run in one["runs"])
    assert told["data"]["weights"][0]["mean_difference"] < 1e-3
    assert (desk.project / "lab" / "figures" / "accumulation.svg").read_text().startswith("<svg ")
    assert not list(desk.project.rglob("*.pt"))
    assert not desk.survivors() and not list(desk.tmp.glob("hotloop-*"))


def test_stopped_it_leaves_nothing(desk: Desk) -> None:
    """While a case is measured; what runs to its end is watched in the same way."""
    process = desk.start("experiment", "accumulation", *QUICK)
    until(lambda: list(desk.project.glob("lab/trials/*/trial-1/progress")))
    process.send_signal(signal.SIGINT)
    ended = desk.finish(process)
    assert ended.code == 130, ended
    assert ended.err.endswith("hotloop: Interrupted.\n")
    assert not desk.survivors() and not list(desk.tmp.glob("hotloop-*"))
    assert not (desk.project / "lab").exists()
