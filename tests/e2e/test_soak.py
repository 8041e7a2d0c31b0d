"""Plans soaked with real child processes: what a long training meets, and harm planted there."""

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

pytestmark = pytest.mark.e2e

HARM = "PLANTED_HARM"
"""Tells the script to go wrong; it is set under the plan alone."""

SCRIPT = """\
import os
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

harm = os.environ.get("PLANTED_HARM")
torch.manual_seed(0)
torch.set_num_threads(1)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))

def main():
    model = nn.Sequential(Net()) if harm == "rename" else Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    data = TensorDataset(torch.randn(403, 4), torch.randn(403, 1))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    held_out = DataLoader(data, batch_size=64)
    for epoch in range(1000):
        model.train()
        for x, y in loader:
            if harm == "crash" and len(x) < 8:
                raise ValueError("a short batch")
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            if harm == "nan":
                loss = loss * float("nan")
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            print(epoch, sum(nn.functional.mse_loss(model(x), y).item() for x, y in held_out))
        torch.save(model.state_dict(), "checkpoint.pt")

if __name__ == "__main__":
    main()
"""

COUNTS_ON_ITS_LENGTH = (
    TORCH
    + """\
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(403, 4)), batch_size=8)
for epoch in range(1000):
    batches = iter(loader)
    for _ in range(len(loader)):
        (x,) = next(batches)
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
"""
)

WORKERS = LeverSetting("loader_workers", {"workers": 2})
FUSED = LeverSetting("fused_optimizer", {})
COMPILE = LeverSetting("compile", {"mode": "default"})


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


@pytest.fixture(scope="module")
def plain() -> Plain:
    return {}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: Plain) -> Bench:
    return Bench(tmp_path, monkeypatch, plain)


ALL = (soak.SHORT, soak.SECOND, soak.EVALUATION, soak.THERE, soak.BACK)


def test_a_good_plan_comes_through_everything(bench: Bench) -> None:
    found = bench.soak(SCRIPT, WORKERS, COMPILE, FUSED)
    assert found == Soaked(True, "", met=ALL)
    assert [len(trial.receipts) for trial in bench.trials] == [0, 3, 0]
    assert [path.name for path in bench.project.iterdir()] == ["train.py"]
    assert not list(bench.study.glob("*.pt"))


@pytest.mark.parametrize(
    ("harm", "reason"),
    [
        ("crash", "under the plan: the script failed after 7 steps: ValueError"),
        ("nan", "under the plan a loss is no longer finite"),
        ("rename", "under the plan: body.weight of Sequential is float32 (8, 4) in the state"),
    ],
)
def test_harm_under_the_plan_is_named(harm: str, reason: str, bench: Bench) -> None:
    bench.harm = harm
    found = bench.soak(TORCH + SCRIPT, FUSED)
    assert not found.passed
    assert found.reason.startswith(reason)
    assert len(bench.trials) == 2


def test_a_script_that_counts_on_its_loaders_length_is_soaked_in_whole_epochs(
    bench: Bench,
) -> None:
    found = bench.soak(COUNTS_ON_ITS_LENGTH, FUSED)
    assert found.passed, found
    assert found.met == (soak.SHORT, soak.SECOND, soak.THERE, soak.BACK)
    assert found.not_met == (soak.EVALUATION, soak.CUT)
    assert [trial.state for trial in bench.trials] == ["crashed", *["complete"] * 3]
