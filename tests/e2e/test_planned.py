"""Scripts under a plan: what it promises takes effect, or the run says that it does not."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from hotloop.machine import GpuWatch
from tests.e2e.conftest import TORCH, Desk

pytestmark = pytest.mark.e2e

SCRIPT = (
    TORCH
    + """\
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
loader = DataLoader(TensorDataset(torch.randn(256, 4)), batch_size=8, shuffle=True)
for epoch in range(2):
    for (x,) in loader:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.6f}")
torch.save(model.state_dict(), "model.pt")
sys.exit(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
"""
)

DIGEST = hashlib.sha256(SCRIPT.encode()).hexdigest()[:16]
WORKERS = {"lever": "loader_workers", "setting": {"workers": 2}}
TF32 = {"lever": "tf32", "setting": {}}


@pytest.fixture
def planned(desk: Desk) -> Desk:
    desk.write(SCRIPT)
    plan(desk, WORKERS)
    return desk


def plan(desk: Desk, *levers: dict[str, Any], **made_for: str) -> None:
    desk.write(json.dumps({"version": 1, "levers": levers, **made_for}), "hotloop.json")


def test_trains_the_same_and_ends_the_same(planned: Desk) -> None:
    plan(planned, WORKERS, script=DIGEST)
    plain = planned.python("train.py", "7")
    weights = (planned.project / "model.pt").read_bytes()
    ended = planned.hotloop("run", "--plan", "hotloop.json", "train.py", "7")
    assert (ended.code, ended.out, ended.err) == (plain.code, plain.out, plain.err)
    assert (planned.project / "model.pt").read_bytes() == weights
    assert not list(planned.tmp.glob("hotloop-*"))  # nothing of ours stays behind


def test_what_is_measured_under_a_plan_has_its_receipt(planned: Desk) -> None:
    words = ("--plan", "hotloop.json", "--steps", "30", "--json", "train.py")
    found = json.loads(planned.profile(*words).out)
    (receipt,) = found["receipts"]
    assert receipt["lever"] == "loader_workers"
    assert receipt["applied"]
    assert found["inventory"]["loaders"][0]["workers"] == 2
    assert planned.study()["trials"][0]["plan"]["levers"] == [WORKERS]


HUNGRY = (
    TORCH
    + """\
class Items(torch.utils.data.Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        scratch = torch.ones(16 * 2**20)  # 64 MiB, for a moment
        return torch.randn(4) * scratch[index]

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x in torch.utils.data.DataLoader(Items(), batch_size=1):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()
"""
)


@pytest.mark.skipif(bool(GpuWatch().look()), reason="shows what happens without a GPU")
@pytest.mark.skipif(
    not Path("/proc/self/smaps_rollup").exists(), reason="nobody says what is shared"
)
def test_memory_that_moves_to_workers_is_not_saved(desk: Desk) -> None:
    """Two workers of 64 MiB each once counted as 64 MiB less."""
    desk.write(HUNGRY)
    plan(desk, WORKERS)
    runs = [
        json.loads(desk.profile("--no-look", "--steps", "20", *words, "--json", "train.py").out)
        for words in ((), ("--plan", "hotloop.json"))
    ]
    plain, planned = (run["memory"] for run in runs)
    assert planned["host_peak"] < plain["host_peak"]
    assert plain["children_peak"] == 0
    assert 128 * 2**20 < planned["children_peak"] < 200 * 2**20
    assert planned["host_peak"] + planned["children_peak"] > plain["host_peak"]


@pytest.mark.skipif(bool(GpuWatch().look()), reason="shows what happens without a GPU")
class TestWithoutEffect:
    """TF32 needs a GPU: here it is an optimisation that does nothing."""

    def test_a_run_stops_and_says_so(self, planned: Desk) -> None:
        plan(planned, TF32)
        ended = planned.hotloop("run", "--plan", "hotloop.json", "train.py")
        ended.expect(96, "tf32 did not take effect: the job does not use a GPU", "--keep-going")
        assert not (planned.project / "model.pt").exists()

    def test_or_goes_on_and_says_so(self, planned: Desk) -> None:
        plan(planned, TF32)
        ended = planned.hotloop("run", "--keep-going", "--plan", "hotloop.json", "train.py")
        assert ended.code == 0
        assert "goes on without it" in ended.err
        assert (planned.project / "model.pt").exists()

    def test_a_trial_is_no_result(self, planned: Desk) -> None:
        plan(planned, TF32)
        ended = planned.profile("--plan", "hotloop.json", "--steps", "5", "train.py")
        ended.expect(96, "tf32 did not take effect", "Take it out")
        assert planned.study()["trials"][0]["state"] == "not_applied"


def test_a_plan_for_another_script_is_refused_unless_told(planned: Desk) -> None:
    plan(planned, WORKERS, script=DIGEST)
    planned.write(SCRIPT + "# changed\n")
    refused = planned.hotloop("run", "--plan", "hotloop.json", "train.py")
    refused.expect(85, "made for another script", "--anyway")
    told = planned.hotloop("run", "--anyway", "--plan", "hotloop.json", "train.py")
    assert told.code == 0
