"""A script whose files are slow to open, under a plan that stages them."""

from __future__ import annotations

import json
import os
import time

import pytest

from hotloop.levers.staging.copying import in_memory
from hotloop.levers.staging.folders import PREFIX, RAM_DISK
from tests.e2e.conftest import TORCH, Desk

pytestmark = pytest.mark.e2e

SCRIPT = (
    TORCH
    + """\
import os, time
from pathlib import Path
from torch.utils.data import DataLoader, Dataset

FAST = os.stat("/dev/shm").st_dev

class Items(Dataset):
    def __init__(self, folder):
        self.folder = folder

    def __len__(self):
        return 100

    def __getitem__(self, index):
        with open(self.folder / str(index), "rb") as file:
            if os.fstat(file.fileno()).st_dev != FAST:
                time.sleep(0.002)
            x = torch.frombuffer(bytearray(file.read()), dtype=torch.float32)
        return x + torch.rand(4), torch.tensor([index / 100])

torch.manual_seed(0)
folder = Path("items")
folder.mkdir(exist_ok=True)
for index in range(100):
    (folder / str(index)).write_bytes(torch.rand(4).numpy().tobytes())
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = DataLoader(Items(folder), batch_size=8, shuffle=True, num_workers=int(sys.argv[1]))
for epoch in range(3):
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
    if not os.path.isdir(RAM_DISK) or os.stat(desk.project).st_dev in in_memory():
        pytest.skip("there is no RAM disk, or files lie in memory as it is")
    desk.write(SCRIPT)
    levers = [{"lever": "stage_data", "setting": {}}]
    desk.write(json.dumps({"version": 1, "levers": levers}), "hotloop.json")
    return desk


def left_behind(before: set[str]) -> set[str]:
    """Once there was time to clear up."""
    deadline = time.monotonic() + 10
    while (left := staged() - before) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def staged() -> set[str]:
    return {name for name in os.listdir(RAM_DISK) if name.startswith(PREFIX)}


@pytest.mark.parametrize("workers", ["0", "2"])
def test_trains_the_same_and_leaves_nothing(planned: Desk, workers: str) -> None:
    before = staged()
    plain = planned.python("train.py", workers)
    ended = planned.hotloop("run", "--plan", "hotloop.json", "train.py", workers)
    assert (ended.code, ended.out, ended.err) == (0, plain.out, plain.err)
    assert left_behind(before) == set()


def test_a_trial_shows_the_job_as_it_is_once_staged(planned: Desk) -> None:
    """It ends in the middle of the training, where nothing of the job's own clears up."""
    before = staged()
    words = ("--steps", "20", "--json")
    plain = json.loads(planned.profile(*words, "train.py", "0").out)
    found = json.loads(planned.profile(*words, "--plan", "hotloop.json", "train.py", "0").out)
    (receipt,) = found["receipts"]
    assert receipt["applied"] and receipt["evidence"]["files"] == 100
    assert receipt["evidence"]["reads"] >= 160 and receipt["once_seconds"] > 0
    assert found["figures"]["step"]["mean"] < 0.7 * plain["figures"]["step"]["mean"]
    assert left_behind(before) == set()
