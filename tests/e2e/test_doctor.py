"""`hotloop doctor` on the machine that the tests run on."""

from __future__ import annotations

import json
import signal

import pytest

from .conftest import Desk, until

pytestmark = pytest.mark.e2e


def test_this_machine_once_measured_and_then_kept(desk: Desk) -> None:
    desk.env["XDG_CACHE_HOME"] = str(desk.base / "cache")
    before = desk.files()
    first = desk.hotloop("doctor", "--json")
    assert first.code == 0, first
    assert first.err.startswith("hotloop: measuring ")
    told = json.loads(first.out)
    roof = told["roof"]
    assert roof["cpu_matrix_flops"]["float32"] > 0
    assert roof["cpu_matrix_flops_one_thread"] > 0
    assert (roof["device"] == "cpu") == (roof["matrix_flops"] == {})
    figures = [value for value in roof.values() if type(value) in (int, float)]
    assert all(value > 0 for value in figures)
    assert {check["status"] for check in told["checks"]} <= {"ok", "warning", "unknown"}
    assert all(check["remedy"] for check in told["checks"] if check["status"] == "warning")

    again = desk.hotloop("doctor")
    assert again.code == 0, again
    assert not again.err or roof["disturbed"]  # such a one is measured again when it is quiet
    assert "roof" in again.out and "\x1b" not in again.out
    desk.expect_clean(before)


def test_ctrl_c_while_it_measures(desk: Desk) -> None:
    desk.env["XDG_CACHE_HOME"] = str(desk.base / "cache")
    process = desk.start("doctor")
    until(lambda: "measuring" in (desk.base / "err").read_text())
    process.send_signal(signal.SIGINT)
    ended = desk.finish(process)
    assert ended.code == 130
    assert not desk.survivors()
    assert not list(desk.tmp.glob("hotloop-*"))
    assert not (desk.base / "cache").exists()
