"""Plans soaked with real child processes: what a long training meets, and harm planted there."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.plan import LeverSetting
from hotloop.study import Soaked
from hotloop.workshop import soak
from tests.e2e.conftest import TORCH
from tests.e2e.soaking import Bench, Plain

pytestmark = pytest.mark.e2e

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


@pytest.fixture(scope="module")
def plain() -> Plain:
    return {}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: Plain) -> Bench:
    return Bench(tmp_path, monkeypatch, plain)


ALL = (soak.SHORT, soak.SECOND, soak.SAME, soak.EVALUATION, soak.THERE, soak.BACK)


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
    assert found.met == (soak.SHORT, soak.SECOND, soak.SAME, soak.THERE, soak.BACK)
    assert found.not_met == (soak.EVALUATION, soak.CUT)
    assert [trial.state for trial in bench.trials] == ["crashed", *["complete"] * 3]
