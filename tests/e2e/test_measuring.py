"""What is measured of real scripts, and that it disturbs none of them."""

from __future__ import annotations

import json
import sys
from concurrent.futures import Executor
from pathlib import Path

import pytest

from .conftest import MARK, TORCH, TRAIN, Desk, Ended, cleared

pytestmark = pytest.mark.e2e

WHOLE_MODELS = (
    TORCH
    + """\
import copy, io, pickle
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(4, 1)
    def forward(self, x):
        return self.inner(x)
torch.manual_seed(0)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
average = copy.deepcopy(model)
for number in range(100):
    x = torch.ones(8, 4)
    loss = (model(x) - 1).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, new in zip(average.parameters(), model.parameters()):
            kept.lerp_(new, 0.1)
    assert torch.allclose(average(x), x @ average.inner.weight.T + average.inner.bias)
    assert not torch.equal(average(x), model(x))
    twin = copy.deepcopy(model)
    assert torch.equal(twin(x), model(x))
    torch.nn.init.zeros_(twin.inner.weight)
    assert not torch.equal(twin(x), model(x))
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    again = torch.load(buffer, weights_only=False)
    assert type(again) is Net and torch.equal(again(x), model(x))
    assert torch.equal(pickle.loads(pickle.dumps(model))(x), model(x))
    assert "forward" not in vars(model) and "__call__" not in vars(model)
    assert type(model) is Net and list(model.state_dict()) == ["inner.weight", "inner.bias"]
    print(number, f"{loss.item():.9f}", flush=True)
    if number == 12:
        sys.exit()
"""
)


def test_models_can_be_copied_and_saved_whole(desk: Desk, pool: Executor) -> None:
    """While roots are sought, and after; and every loss is the one that plain python sees."""
    desk.write(WHOLE_MODELS)
    plain = pool.submit(desk.python, "train.py", env={MARK: ""})
    ended = desk.profile("train.py")
    assert ended.code == 0, ended
    assert desk.printed() == plain.result().out
    assert desk.study()["trials"][0]["measurement"]["inventory"]["models"][0]["name"] == "Net"


WORKERS = (
    TORCH
    + """\
from torch.utils.data import DataLoader, Dataset
class Data(Dataset):
    def __len__(self):
        return 4000
    def __getitem__(self, index):
        assert torch.utils.data.get_worker_info() is not None
        return torch.full((4,), float(index))
def main():
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    for batch in DataLoader(Data(), 8, num_workers=1, multiprocessing_context=sys.argv[1]):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
if __name__ == "__main__":
    main()
"""
)


def test_loader_workers(tmp_path: Path, pool: Executor) -> None:
    """However they are started: nothing of ours follows them, and none survives."""

    def trial(method: str) -> Ended:
        (tmp_path / method).mkdir()
        with cleared(tmp_path / method) as desk:
            desk.write(WORKERS)
            return desk.profile("--steps", "3", "--json", "train.py", method)

    trials = {method: pool.submit(trial, method) for method in ("fork", "spawn", "forkserver")}
    for method, future in trials.items():
        ended = future.result()
        assert ended.code == 0, (method, ended)
        inventory = json.loads(ended.out)["inventory"]
        (loader,) = inventory["loaders"]
        assert (loader["workers"], loader["batches"]) == (1, 500)
        assert inventory["optimizers"][0]["steps"] == 14


@pytest.fixture(scope="module")
def measured(shared_desk: Desk) -> Ended:
    shared_desk.write(TRAIN)
    words = ("--no-look", "--steps", "20", "--json", "--study", "kept", "train.py")
    return shared_desk.hotloop("profile", *words)


def test_figures_as_json(measured: Ended) -> None:
    assert (measured.code, measured.err) == (0, "hotloop: measuring train.py …\n")
    document = json.loads(measured.out)
    step = document["figures"]["step"]
    assert 0 < step["p50"] <= step["p95"] <= step["p99"]
    phases = {phase["phase"]: phase for phase in document["figures"]["phases"]}
    assert {"forward", "backward", "optimizer", "rest"} <= set(phases)
    assert sum(p["seconds"] for p in phases.values()) == pytest.approx(step["mean"], rel=0.01)
    assert sum(p["share"] for p in phases.values()) == pytest.approx(1.0, rel=0.01)
    assert document["software"]["python"] == sys.version.split()[0]


def test_the_study_is_where_it_was_asked_for(measured: Ended, shared_desk: Desk) -> None:
    (path,) = shared_desk.project.glob("kept/*/study.json")
    assert json.loads(measured.out)["study"] == str(path)
    assert json.loads(path.read_text())["trials"][0]["state"] == "complete"
    assert not (shared_desk.project / ".hotloop").exists()


def test_the_study_tells_no_secrets(measured: Ended, shared_desk: Desk) -> None:
    """The environment a script is started with is full of them."""
    files = [path for path in shared_desk.project.rglob("kept/**/*") if path.is_file()]
    assert len(files) > 3
    assert not [path for path in files if shared_desk.mark.encode() in path.read_bytes()]
