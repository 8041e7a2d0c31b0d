"""A script whose items take their time, under a plan that keeps them."""

from __future__ import annotations

import json

import pytest

from tests.e2e.conftest import TORCH, Desk

pytestmark = pytest.mark.e2e

SCRIPT = (
    TORCH
    + """\
import time
from torch.utils.data import DataLoader, Dataset

class Items(Dataset):
    def __len__(self):
        return 100

    def __getitem__(self, index):
        time.sleep(0.002)
        return torch.sin(torch.arange(4.0) * index), torch.tensor([index / 100])

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = DataLoader(Items(), batch_size=8, shuffle=True, num_workers=int(sys.argv[1]))
for epoch in range(4):
    for x, y in loader:
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.6f}")
"""
)


@pytest.fixture
def planned(desk: Desk) -> Desk:
    desk.write(SCRIPT)
    levers = [{"lever": "cache_dataset", "setting": {}}]
    desk.write(json.dumps({"version": 1, "levers": levers}), "hotloop.json")
    return desk


def test_trains_the_same_with_and_without_workers(planned: Desk) -> None:
    plain = planned.python("train.py", "0")
    for workers in ("0", "2"):
        ended = planned.hotloop("run", "--plan", "hotloop.json", "train.py", workers)
        assert (ended.code, ended.out, ended.err) == (0, plain.out, plain.err)


def test_a_trial_shows_the_job_as_it_is_once_filled(planned: Desk) -> None:
    words = ("--steps", "20", "--json")
    plain = json.loads(planned.profile(*words, "train.py", "0").out)
    found = json.loads(planned.profile(*words, "--plan", "hotloop.json", "train.py", "0").out)
    (receipt,) = found["receipts"]
    assert receipt["applied"] and receipt["lever"] == "cache_dataset"
    assert receipt["evidence"]["items"] == 100 and receipt["evidence"]["batches"] >= 20
    assert receipt["once_seconds"] > 0
    # An item of 2 ms against a copy of it: within the first pass already.
    assert found["figures"]["step"]["mean"] < 0.7 * plain["figures"]["step"]["mean"]


def test_verify_finds_the_same_training(planned: Desk) -> None:
    words = ("verify", "--json", "--plan", "hotloop.json", "--steps", "20", "train.py", "0")
    ended = planned.hotloop(*words)
    assert ended.code == 0, ended
    told = json.loads(ended.out)
    assert told["same"]
    assert told["equivalence"]["steps"] == 20
