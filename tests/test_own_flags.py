"""A script under a plan, held to the same script with other flags. No process is run here."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import own_flags
import pytest

from hotloop import plan
from hotloop.plan import Plan
from hotloop.trial.order import Order
from hotloop.trial.trial import Trial
from tests import builders


class Launcher:
    """With those flags a step takes twice as long."""

    def launch(self, order: Order, watch: object) -> Trial:
        log = builders.Log()
        for _ in range(20):
            log.forward(20 if "--gib" in order.job.args else 10).backward(0).optimizer(0)
        return builders.trial(measurement=builders.measurement(log.events))


@pytest.mark.parametrize("pairs", [1, 2])
def test_a_pair_alone_has_a_ratio(
    pairs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Time on a lent machine may do for no more."""
    plan.save(Plan(), chosen := tmp_path / "hotloop.json")
    words = ["--plan", str(chosen), "--flags=--gib 0", "--pairs", str(pairs), "--at-least", "1.5"]
    words += ["--out", str(tmp_path / "found.json"), "--", "card.py"]
    monkeypatch.setattr(own_flags, "ProcessLauncher", Launcher)
    monkeypatch.setattr(sys, "argv", ["own_flags.py", *words])
    with pytest.raises(SystemExit) as end:
        own_flags.main()
    assert end.value.code == 0
    assert "the plan is 2.000× as fast" in capsys.readouterr().out
    assert json.loads((tmp_path / "found.json").read_text())["ratio"] == pytest.approx(2.0)
