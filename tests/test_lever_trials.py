"""One optimisation that ends its job ends no trials of the others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import lever_trials
import pytest

from hotloop.levers.base import Receipt
from hotloop.trial.trial import State
from tests import builders

ENDED = builders.trial(state=State.CRASHED, reason="it was ended by SIGSEGV", measurement=None)
DONE = builders.trial(receipts=(Receipt("tf32", True),))


def test_a_trial_that_crashes_is_told_and_the_next_one_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def trial(asked: Any, levers: tuple[str, ...], *_: Any) -> Any:
        return ENDED if "model_graph" in levers else DONE

    out = tmp_path / "out.json"
    words = ["lever_trials.py", "--out", str(out), "model_graph", "tf32"]
    monkeypatch.setattr(lever_trials, "_trial", trial)
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit) as ended:
        lever_trials.main()
    assert ended.value.code == 1
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "model_graph: NOT APPLIED: crashed: it was ended by SIGSEGV"
    assert said[1].startswith("tf32: ")
    assert json.loads(out.read_text(encoding="utf-8"))["tf32"]["applied"]
