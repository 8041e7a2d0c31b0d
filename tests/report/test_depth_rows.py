from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.depth import (
    DepthReport,
    FunctionRow,
    FunctionTable,
    MemoryGrowth,
    MemoryLine,
    MemoryTimeline,
    ModuleRow,
    OperatorRow,
    OperatorTable,
    SampledLine,
)
from hotloop.inspection import Frame
from hotloop.report.depth_rows import FEW, MOST, DepthRows, Table, opened, rows, where

HOME = "/home-of/me"
LINE = Frame(f"{HOME}/train.py", 7, "main", True, "loss = model(x)")


def made(report: DepthReport) -> DepthRows:
    return rows(report, Path("/studies/trial-2"), HOME)


def only(report: DepthReport) -> Table:
    (table,) = made(report).tables
    assert all(len(row) == len(table.head) for row in table.rows)
    return table


def function(name: str, **changes: int) -> FunctionRow:
    calls = changes.get("calls", 40)
    primitive = changes.get("primitive", calls)
    return FunctionRow(f"{HOME}/train.py", 3, name, calls, primitive, 0.5, 1.25, True)


def test_functions() -> None:
    built_in = FunctionRow("~", 0, "<built-in method torch.relu>", 9, 9, 0.25, 0.25)
    found = [function("step"), function("walk", calls=40, primitive=4), built_in]
    table = only(DepthReport("python", functions=FunctionTable(20, 2.0, found)))
    assert table.title == "functions, 20 steps in 2.00 s under the profiler"
    assert table.rows == (
        ("500.0 ms", "1.25 s", "40", "step  train.py:3"),
        ("500.0 ms", "1.25 s", "40/4", "walk  train.py:3"),
        ("250.0 ms", "250.0 ms", "9", "<built-in method torch.relu>"),
    )


def test_a_table_on_screen_ends_somewhere() -> None:
    many = FunctionTable(20, 2.0, [function(f"f{n}") for n in range(100)])
    assert len(only(DepthReport("python", functions=many)).rows) == MOST
    lines = [MemoryLine(LINE, 100, 1)] * 50
    assert len(only(DepthReport("python", growth=MemoryGrowth(3, lines))).rows) == FEW


def test_lines_of_both_kinds_of_process() -> None:
    lines = [SampledLine(None, LINE, 1.5, 0.75), SampledLine(1, LINE, 0.5, 1.0)]
    own, workers = made(DepthReport("python", lines=lines)).tables
    assert own.rows == (("75.0%", "1.50 s", "train.py:7  loss = model(x)"),)
    assert workers.rows == (("1", "100.0%", "500.0 ms", "train.py:7  loss = model(x)"),)


def test_memory_that_grows() -> None:
    grown = MemoryGrowth(10, [MemoryLine(LINE, 2048, 20)])
    python, tensors = made(DepthReport("python", growth=grown, tensor_growth=grown)).tables
    assert python.title == "memory that grows in Python, over 10 steps"
    assert python.rows == (("2.0 KiB", "20", "train.py:7  loss = model(x)"),)
    assert tensors.head == ("bytes", "tensors", "line")


def test_memory_that_does_not_grow_is_said_too() -> None:
    found = made(DepthReport("python", tensor_growth=MemoryGrowth(10, [])))
    assert found.tables == ()
    assert found.facts == (("growth", "none of tensors over 10 steps"),)


def test_operators_and_modules_on_a_gpu() -> None:
    operator = OperatorRow("aten::mm", "[2, 3] [3, 4]", 10, 0.1, 0.2, 0.3, 0.4)
    module = ModuleRow("Net.fc", "Linear", 4, 0.1, 0.2, 0.3, 0.4, 0.8, 1.2)
    table = OperatorTable(4, [operator], [module])
    operators, modules = made(DepthReport("torch", operators=table)).tables
    assert operators.head[:2] == ("GPU own", "GPU total")
    assert operators.rows == (
        ("75.0 ms", "100.0 ms", "25.0 ms", "50.0 ms", "2.5", "aten::mm", "[2, 3] [3, 4]"),
    )
    assert modules.title == "modules, GPU time of a step, the dearest in the order they are called"
    assert modules.rows == (("300.0 ms", "100.0 ms", "200.0 ms", "1", "Net.fc", "Linear"),)


def test_without_a_gpu_there_are_no_columns_of_it() -> None:
    operator = OperatorRow("aten::mm", "", 4, 0.1, 0.2)
    table = OperatorTable(4, [operator], [])
    assert only(DepthReport("torch", operators=table)).rows == (
        ("25.0 ms", "50.0 ms", "1", "aten::mm", ""),
    )


def test_of_many_modules_the_dearest_stand_in_the_order_they_are_called() -> None:
    modules = [ModuleRow(f"Net.{n}", "Linear", 1, 0, 0, float(n)) for n in range(MOST + 5)]
    operators = [OperatorRow("aten::mm", "", 4, 0.1, 0.2)]
    _, table = made(DepthReport("torch", operators=OperatorTable(1, operators, modules))).tables
    assert [row[-2] for row in table.rows] == [f"Net.{n}" for n in range(5, MOST + 5)]


def test_a_trace() -> None:
    memory = [
        MemoryTimeline("host", [0.0, 0.5], [10, 2048]),
        MemoryTimeline("GPU 0", [0.25], [4096]),
    ]
    files = ["trace.json.gz", "tensorboard", "memory.pickle", "memory.csv"]
    report = DepthReport("kernel", memory=memory, traced_steps=4, files=files, problems=["No."])
    found = made(report)
    assert found.problems == ("No.",)
    assert [label for label, _ in found.facts] == ["traced", "memory", "memory"]
    assert found.facts[1][1].startswith("host up to 2.0 KiB 500.0 ms into the trace, counted")
    assert found.facts[2][1] == "GPU 0 up to 4.0 KiB 250.0 ms into the trace"
    trace, logs, snapshot, table = found.files
    assert trace == "/studies/trial-2/trace.json.gz: open it at https://ui.perfetto.dev"
    assert logs.startswith("tensorboard --logdir /studies/trial-2/tensorboard")
    assert "pytorch.org/memory_viz" in snapshot
    assert table == "/studies/trial-2/memory.csv"


def test_a_file_below_here_has_a_short_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "my study" / "python.pstats"
    assert opened(path) == "python -m pstats 'my study/python.pstats'"


@pytest.mark.parametrize(
    ("file", "shown"),
    [
        (f"{HOME}/lib/data.py", "lib/data.py:5"),
        ("train.py", "train.py:5"),
        ("/usr/lib/python3/site-packages/torch/optim/adam.py", "torch/optim/adam.py:5"),
        ("/usr/lib/python3.11/multiprocessing/queues.py", "multiprocessing/queues.py:5"),
    ],
)
def test_where_a_line_is(file: str, shown: str) -> None:
    assert where(file, 5, HOME) == shown
