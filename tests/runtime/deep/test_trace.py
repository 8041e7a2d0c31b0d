from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.runtime.deep.allocations import timelines
from hotloop.runtime.deep.ranges import Ranges
from tests.runtime.deep.conftest import Train

Step = Callable[[], None]


def traced(folder: Path) -> list[dict[str, Any]]:
    with gzip.open(folder / "trace.json.gz") as file:
        events: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return events


@pytest.fixture
def loading(jobs: Any, step: Step) -> Step:
    batches = iter(jobs.loader(size=1))

    def loading_step() -> None:
        next(batches)
        step()

    return loading_step


def test_phases_and_modules_are_ranges(train: Train, loading: Step, tmp_path: Path) -> None:
    report = train("kernel").until_seen(loading)
    assert (report.problems, report.traced_steps) == ([], 4)
    names = Counter(event["name"] for event in traced(tmp_path) if event.get("ph") == "X")
    assert {name: names[f"phase: {name}"] for name in ("data", "forward", "backward")} == {
        "data": 4,
        "forward": 4,
        "backward": 4,
    }
    assert names["phase: optimizer"] == 8  # zero_grad and step
    assert names["module: Net.body.0 (Linear)"] == 4
    assert names["aten::addmm"] == 8


def test_a_loss_is_part_of_forward(train: Train, loading: Step, tmp_path: Path) -> None:
    train("kernel").until_seen(loading)
    spans = [event for event in traced(tmp_path) if event.get("ph") == "X"]
    (forward, *_) = [span for span in spans if span["name"] == "phase: forward"]
    (mean, *_) = [span for span in spans if span["name"] == "aten::mean"]
    assert forward["ts"] <= mean["ts"] <= forward["ts"] + forward["dur"]


def test_ranges_lie_inside_each_other(train: Train, loading: Step, tmp_path: Path) -> None:
    """Viewers drop what begins in one and ends in the next."""
    train("kernel").until_seen(loading)
    spans = [event for event in traced(tmp_path) if event.get("cat") == "user_annotation"]
    spans.sort(key=lambda span: (span["ts"], -span["dur"]))
    assert sum(span["name"].startswith("ProfilerStep") for span in spans) == 4
    ends: list[float] = []
    for span in spans:
        while ends and ends[-1] <= span["ts"]:
            ends.pop()
        end = span["ts"] + span["dur"]
        assert not ends or end <= ends[-1] + 1e-3, span["name"]
        ends.append(end)


def test_the_log_of_tensorboard_is_the_same_trace(
    train: Train, loading: Step, tmp_path: Path
) -> None:
    report = train("kernel").until_seen(loading)
    assert report.files == ["trace.json.gz", "tensorboard"]
    (log,) = (tmp_path / "tensorboard").iterdir()
    assert log.name.endswith(".pt.trace.json")
    assert json.loads(log.read_text())["traceEvents"] == traced(tmp_path)


def test_memory_over_time(train: Train, loading: Step) -> None:
    (host,) = train("kernel").until_seen(loading).memory
    assert host.device == "host" and host.peak > 0
    assert len(host.seconds) == len(host.allocated) > 10
    assert host.seconds == sorted(host.seconds) and host.seconds[0] >= 0


def test_each_device_has_its_own_timeline() -> None:
    def memory(ts: float, allocated: int, kind: int, number: int) -> dict[str, Any]:
        told = {"Total Allocated": allocated, "Device Type": kind, "Device Id": number}
        return {"ph": "i", "name": "[memory]", "ts": ts, "args": told}

    events = [
        {"ph": "X", "name": "aten::empty", "ts": 1_000_000.0, "dur": 5},
        memory(3_000_000.0, 300, 1, 0),
        memory(2_000_000.0, 200, 1, 0),
        memory(2_500_000.0, 7, 0, -1),
    ]
    host, gpu = timelines(events)
    assert (host.device, host.seconds, host.allocated) == ("host", [1.5], [7])
    assert (gpu.device, gpu.seconds, gpu.allocated) == ("GPU 0", [1.0, 2.0], [200, 300])
    assert gpu.peak == 300


def test_nsight_is_told_where_there_is_cuda(torch: Any) -> None:
    told: list[str] = []
    nvtx = SimpleNamespace(range_push=told.append, range_pop=lambda: told.append("end"))
    cuda = SimpleNamespace(is_initialized=lambda: True, nvtx=nvtx)
    ranges = Ranges(SimpleNamespace(profiler=torch.profiler, cuda=cuda), with_nvtx=True)
    ranges.begin("phase: forward")
    ranges.begin("phase: copy")
    assert ranges.innermost == "phase: copy"
    for _ in range(3):  # one more than were begun
        ranges.end()
    assert told == ["phase: forward", "phase: copy", "end", "end"]


def test_a_build_without_nvtx(torch: Any) -> None:
    def fail(name: str) -> None:
        raise RuntimeError("NVTX functions not installed")

    cuda = SimpleNamespace(is_initialized=lambda: True, nvtx=SimpleNamespace(range_push=fail))
    ranges = Ranges(SimpleNamespace(profiler=torch.profiler, cuda=cuda), with_nvtx=True)
    for _ in range(2):
        ranges.begin("phase: forward")
        ranges.end()
    assert ranges.innermost == ""
