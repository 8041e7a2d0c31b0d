"""Data that changes from pass to pass, in ways that nobody sees: stale data is found by a soak."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.plan import LeverSetting
from hotloop.workshop import soak
from tests.e2e.conftest import TORCH
from tests.e2e.soaking import Bench, Plain

pytestmark = pytest.mark.e2e

SCRIPT = (
    TORCH
    + """\
import random, time
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, WeightedRandomSampler

EPOCH = 0
chosen = torch.ones(203)

class Items(Dataset):
    epoch = 0

    def __len__(self):
        return 203

    def __getitem__(self, index):
        x = torch.sin(torch.arange(4.0) * index)
        time.sleep(0.001)
        return ITEM

    def all(self):
        return torch.sin(torch.arange(203.0)[:, None] * torch.arange(4.0))

def harder():
    epoch = 0
    def change(x):
        return x * (1 + epoch)
    def move():
        nonlocal epoch
        epoch += 1
    return change, move

harder.change, harder.move = harder()
data = Items()
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = DataLoader(data, batch_size=8, LOADER)
for EPOCH in range(1000):
    with open("stage.txt", "w") as file:
        file.write(str(EPOCH))
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
    BETWEEN
"""
)
PLAIN = "x, x[:1]"
SHUFFLED = "shuffle=True"
CACHE = LeverSetting("cache_dataset", {})
WORKERS = LeverSetting("loader_workers", {"workers": 2})


@pytest.fixture(scope="module")
def plain() -> Plain:
    return {}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: Plain) -> Bench:
    return Bench(tmp_path, monkeypatch, plain)


def script(item: str = PLAIN, loader: str = SHUFFLED, between: str = "pass") -> str:
    return SCRIPT.replace("ITEM", item).replace("LOADER", loader).replace("BETWEEN", between)


UNSEEN = "globals()['EPO' + 'CH']"
"""Where code names a global, kept items and workers follow it."""

STALE = {
    "a global of the script": (script(f"x * (1 + {UNSEEN}), x[:1]"), CACHE),
    "of which few items make use": (
        script(f"(x * (1 + {UNSEEN}) if index % 8 == 0 else x), x[:1]"),
        CACHE,
    ),
    "a global, in workers that stay": (script(f"x * (1 + {UNSEEN}), x[:1]"), WORKERS),
    "a file": (script("x * (1 + int(open('stage.txt').read())), x[:1]"), CACHE),
    "a closure": (script("harder.change(x), x[:1]", between="harder.move()"), CACHE),
}


@pytest.mark.parametrize("name", STALE)
def test_items_that_were_kept_and_have_changed_are_found(name: str, bench: Bench) -> None:
    found = bench.soak(*STALE[name])
    assert not found.passed
    assert found.reason.startswith("under the plan batch ")
    assert found.reason.endswith(" of loader 0 in a second epoch holds other data")
    assert [len(trial.receipts) for trial in bench.trials] == [0, 1, 0]


HARMLESS = {
    "items that stay": (script(), CACHE),
    "an epoch that everybody sees": (
        script("x * (1 + self.epoch), x[:1]", between="data.epoch += 1"),
        WORKERS,
    ),
    "a global that its code names": (script("x * (1 + EPOCH), x[:1]"), WORKERS),
    "chance, in workers": (script("x + 0.1 * torch.randn(4) * random.random(), x[:1]"), WORKERS),
    "a sampler of its own": (script(loader="sampler=WeightedRandomSampler(chosen, 203)"), CACHE),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_the_same_data_in_a_second_pass_passes(name: str, bench: Bench) -> None:
    found = bench.soak(*HARMLESS[name])
    assert found.passed, found
    assert soak.SAME in found.met


OWN = {
    "the time": script("x * (time.time() % 1), x[:1]"),
    "the weights": script(
        loader="sampler=WeightedRandomSampler(chosen, 203)",
        between="loader.sampler.weights[:] = 1 + model(data.all()).detach().square().flatten()",
    ),
}


@pytest.mark.parametrize("name", OWN)
def test_of_data_that_no_two_runs_share_nothing_is_said(name: str, bench: Bench) -> None:
    found = bench.soak(OWN[name], CACHE)
    assert found.passed, found
    assert soak.SAME not in found.met and {soak.SAME, soak.DIFFERS} & {*found.not_met}
