"""Soaks a script with real child processes."""

from __future__ import annotations

import getpass
import sys
import tempfile
from pathlib import Path

import pytest

from hotloop.job import ScriptJob
from hotloop.plan import LeverSetting, Plan
from hotloop.study import Soaked
from hotloop.trial.launch import ProcessLauncher
from hotloop.trial.order import Order
from hotloop.trial.spec import Soak, StopRule
from hotloop.trial.trial import Trial
from hotloop.workshop import soak
from tests.e2e.conftest import TORCH

HARM = "PLANTED_HARM"
"""Tells the script to go wrong; it is set under the plan alone."""

Plain = dict[tuple[str, int], tuple[Trial, bytes]]
"""The plain job of each script and length, as it was soaked first, and the state that it left."""


class Bench:
    """Soaks a script in a folder of its own."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch, plain: Plain) -> None:
        self.project, self.study = base / "project", base / "study"
        self.project.mkdir()
        self.study.mkdir()
        self.trials: list[Trial] = []
        self.harm = ""
        self._patch = monkeypatch
        self._plain = plain
        monkeypatch.setenv("HOME", str(base))
        # Where torch keeps it by itself: what other tests have compiled is not compiled again.
        cache = Path(tempfile.gettempdir(), f"torchinductor_{getpass.getuser()}")
        monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(cache))

    def soak(self, script: str, *levers: LeverSetting) -> Soaked:
        (self.project / "train.py").write_text(script)
        self._script = script.removeprefix(TORCH)
        return soak.soak(Plan(levers), self.run, self.study)

    def run(self, plan: Plan, order: Soak, purpose: str) -> Trial:
        if not plan.is_empty or order.load:
            trial = self._launched(plan, order, purpose)
        else:
            trial = self._plainly(order, purpose)
        self.trials.append(trial)
        return trial

    def _plainly(self, order: Soak, purpose: str) -> Trial:
        """Once for all plans: it is the same for each."""
        known, state = (self._script, order.batches), Path(order.save)
        if known not in self._plain:
            trial = self._launched(Plan(), order, purpose)
            self._plain[known] = trial, state.read_bytes() if state.is_file() else b""
        trial, left = self._plain[known]
        state.write_bytes(left)
        return trial

    def _launched(self, plan: Plan, order: Soak, purpose: str) -> Trial:
        self._patch.setenv(HARM, "" if plan.is_empty else self.harm)
        number = len(self.trials) + 1
        return ProcessLauncher().launch(
            Order(
                number,
                ScriptJob("train.py", False, (), sys.executable, str(self.project)),
                plan,
                StopRule(warm_up=2, steps=60),
                120.0,
                self.study / f"trial-{number}",
                purpose,
                soak=order,
            ),
            lambda glimpse: None,
        )
