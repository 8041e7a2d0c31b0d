"""Each depth, from a script to the files that other tools open."""

from __future__ import annotations

import csv
import gzip
import json
import pickle
import pstats
from collections import Counter
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest

from hotloop.runtime.deep.functions import MIXED

from .conftest import Ended, cleared

pytestmark = pytest.mark.e2e

TRAIN = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Numbers(Dataset):
    def __len__(self):
        return 100_000
    def __getitem__(self, index):
        total = sum(range(20_000))
        return torch.full((4,), float(index % 7))

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.head = nn.Linear(8, 1)
    def forward(self, x):
        return self.head(self.body(x))

history, kept = [], []

def main():
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in DataLoader(Numbers(), 8, num_workers=1):
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        history.append("." * 10_000 + str(len(history)))
        kept.append(torch.ones(1000))
        torch.save(model.state_dict(), "model.pt")

if __name__ == "__main__":
    main()
"""


class Run:
    def __init__(self, base: Path, kind: str, script: str = TRAIN) -> None:
        with cleared(base) as desk:
            desk.write(script)
            words = ("--no-look", "--steps", "3", "--depth", kind)
            self.ended: Ended = desk.profile(*words, "train.py")
            assert self.ended.code == 0, self.ended
            self.script = str(desk.project / "train.py")
            (self.folder,) = desk.project.glob(".hotloop/*/trial-2")
            self.deep: Any = desk.study()["trials"][1]["deep"]
            assert {*self.deep["problems"]} <= {MIXED}  # on Python 3.12


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, pool: Executor) -> Any:
    kinds = ("python", "torch", "kernel")
    return {kind: pool.submit(Run, tmp_path_factory.mktemp(kind), kind) for kind in kinds}


def test_functions_lines_and_growing_memory(runs: Any) -> None:
    run = runs["python"].result()
    stats = pstats.Stats(str(run.folder / "python.pstats")).stats  # type: ignore[attr-defined]
    calls = {name: entry[1] for (file, _, name), entry in stats.items() if file == run.script}
    assert calls == {"forward": 20}
    sources = Counter(
        line["place"]["source"] for line in run.deep["lines"] if line["worker"] is not None
    )
    assert "total = sum(range(20_000))" in sources
    grown = {line["place"]["source"]: line["bytes"] for line in run.deep["growth"]["lines"]}
    kept = {line["place"]["source"]: line["bytes"] for line in run.deep["tensor_growth"]["lines"]}
    assert 10 * 10_000 <= grown['history.append("." * 10_000 + str(len(history)))'] < 120_000
    assert kept == {"kept.append(torch.ones(1000))": 10 * 4000}
    for words in ("lines of the loader's workers", "python -m pstats .hotloop/", "history.append"):
        assert words in run.ended.out


def test_operators_and_modules(runs: Any) -> None:
    run = runs["torch"].result()
    with (run.folder / "operators.csv").open(newline="") as file:
        rows = {(row["name"], row["shapes"]): row for row in csv.DictReader(file)}
    assert rows["aten::addmm", "[8] [8, 4] [4, 8]"]["calls"] == "4"
    with (run.folder / "modules.csv").open(newline="") as file:
        modules = [row["path"] for row in csv.DictReader(file)]
    assert modules == ["Net", "Net.body", "Net.body.0", "Net.body.1", "Net.head"]
    assert "aten::addmm" in run.ended.out and "Net.body.0" in run.ended.out


def test_a_trace(runs: Any) -> None:
    run = runs["kernel"].result()
    with gzip.open(run.folder / "trace.json.gz") as file:
        trace = json.load(file)
    names = Counter(event["name"] for event in trace["traceEvents"] if event.get("ph") == "X")
    phases = ("data", "forward", "backward", "optimizer")
    assert [names[f"phase: {phase}"] for phase in phases] == [4, 4, 4, 8]
    (log,) = (run.folder / "tensorboard").glob("*.pt.trace.json")
    assert json.loads(log.read_text()) == trace
    with (run.folder / "memory.csv").open(newline="") as file:
        assert {row["device"] for row in csv.DictReader(file)} == {"host"}
    assert "https://ui.perfetto.dev" in run.ended.out
    assert "tensorboard --logdir .hotloop/" in run.ended.out


ON_GPU = TRAIN.replace("model = Net()", "model = Net().cuda()").replace(
    "model(batch)", "model(batch.cuda())"
)


@pytest.fixture
def gpu() -> None:
    if not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("no GPU")


@pytest.mark.gpu
def test_operators_and_modules_on_a_gpu(gpu: None, tmp_path: Path) -> None:
    table = Run(tmp_path, "torch", ON_GPU).deep["operators"]
    rows = {(row["name"], row["shapes"]): row for row in table["operators"]}
    product = rows["aten::addmm", "[8] [8, 4] [4, 8]"]
    assert 0 < product["gpu_own"] <= product["gpu_total"]
    assert sum(row["gpu_own"] for row in table["operators"]) < 1
    net, body, *_, head = table["modules"]
    for row in (net, body, head):
        assert row["forward_gpu"] > 0 and row["backward_gpu"] > 0
    assert net["forward_gpu"] >= body["forward_gpu"] + head["forward_gpu"]


@pytest.mark.gpu
def test_a_trace_of_a_gpu(gpu: None, tmp_path: Path) -> None:
    run = Run(tmp_path, "kernel", ON_GPU)
    with gzip.open(run.folder / "trace.json.gz") as file:
        events = json.load(file)["traceEvents"]
    assert any(event.get("cat") == "kernel" for event in events)
    names = Counter(event["name"] for event in events if event.get("cat") == "user_annotation")
    phases = ("data", "copy", "forward", "backward")
    assert [names[f"phase: {phase}"] for phase in phases] == [4, 4, 4, 4]
    with (run.folder / "memory.csv").open(newline="") as table:
        assert {row["device"] for row in csv.DictReader(table)} == {"host", "GPU 0"}
    with (run.folder / "memory.pickle").open("rb") as snapshot:
        assert pickle.load(snapshot)["device_traces"]
