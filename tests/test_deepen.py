from __future__ import annotations

import csv
from pathlib import Path

import pytest

from hotloop import codec, study
from hotloop.deepen import deepen, deepened, report_of
from hotloop.depth import (
    Depth,
    DepthReport,
    MemoryTimeline,
    ModuleRow,
    OperatorRow,
    OperatorTable,
)
from hotloop.plan import Plan
from hotloop.study import Study
from hotloop.trial.fake import FakeLauncher
from hotloop.trial.order import Order, Watcher
from hotloop.trial.trial import State, Trial
from tests.builders import job, machine, trial

OPERATORS = OperatorTable(
    4, [OperatorRow("aten::mm", "[2, 3]", 4, 0.1, 0.2)], [ModuleRow("Net", "Net", 4, 1, 2, 3)]
)


class Launcher(FakeLauncher):
    def launch(self, order: Order, watcher: Watcher) -> Trial:
        order.folder.mkdir()
        return super().launch(order, watcher)


def deepen_with(ended: Trial, folder: Path, kind: Depth = Depth.TORCH) -> tuple[Study, Order]:
    launcher = Launcher([ended])
    record = study.begin("profile", job(), machine()).with_trial(trial(number=1))
    record = deepen(record, job(), Plan(), kind, folder, launcher, lambda glimpse: None, 90.0)
    return record, launcher.orders[0]


@pytest.mark.parametrize("kind", [Depth.PYTHON, Depth.TORCH, Depth.KERNEL])
def test_a_trial_of_its_own(kind: Depth, tmp_path: Path) -> None:
    record, order = deepen_with(trial(deep=DepthReport(kind.value)), tmp_path, kind)
    assert (order.number, order.purpose) == (2, f"depth-{kind.value}")
    assert order.limit_seconds == 90.0 and order.folder == tmp_path / "trial-2"
    assert order.deep is not None
    assert (order.deep.kind, order.deep.folder) == (kind.value, str(tmp_path / "trial-2"))
    assert deepened(record) == record.trials[1]
    assert codec.decode((tmp_path / "study.json").read_bytes(), Study) == record


def test_whole_tables_are_left_as_files(tmp_path: Path) -> None:
    memory = [MemoryTimeline("host", [0.5], [1024])]
    report = DepthReport("torch", operators=OPERATORS, memory=memory, files=["trace.json.gz"])
    record, _ = deepen_with(trial(deep=report), tmp_path)
    kept = record.trials[1].deep
    assert kept is not None
    names = ["operators.csv", "modules.csv", "memory.csv"]
    assert kept.files == ["trace.json.gz", *names]
    tables = {}
    for name in names:
        with (tmp_path / "trial-2" / name).open(newline="") as file:
            (tables[name],) = csv.DictReader(file)
    assert tables["operators.csv"]["shapes"] == "[2, 3]"
    assert tables["operators.csv"]["gpu_own"] == ""  # unknown, which is not nothing
    assert tables["modules.csv"]["backward_cpu"] == "2"
    assert tables["memory.csv"] == {
        "device": "host",
        "seconds": "0.5",
        "allocated_bytes": "1024",
    }


def test_one_that_failed_says_why(tmp_path: Path) -> None:
    ended = trial(state=State.TIMED_OUT, reason="It was stopped.", measurement=None)
    record, _ = deepen_with(ended, tmp_path)
    report = report_of(record.trials[1])
    assert report.kind == "torch"
    assert report.problems == [
        "The run under the profiler did not come to its end. It was stopped."
    ]


def test_what_one_that_failed_saw_until_then_is_kept(tmp_path: Path) -> None:
    deep = DepthReport("torch", operators=OPERATORS, problems=["No trace."])
    ended = trial(state=State.CRASHED, reason="It failed.", deep=deep)
    record, _ = deepen_with(ended, tmp_path)
    report = report_of(record.trials[1])
    assert report.operators == OPERATORS
    assert report.problems[1:] == ["No trace."]


def test_without_depth_there_is_none() -> None:
    assert deepened(study.begin("profile", job(), machine()).with_trial(trial())) is None
