from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hotloop.depth import OperatorTable
from tests.runtime.deep.conftest import Train


def table(train: Train, step: Callable[[], None]) -> OperatorTable:
    report = train("torch").until_seen(step)
    assert report.problems == []
    assert report.operators is not None
    return report.operators


def test_operators_with_their_shapes(train: Train, step: Callable[[], None]) -> None:
    found = table(train, step)
    assert found.steps == 4
    rows = {(row.name, row.shapes): row for row in found.operators}
    row = rows["aten::addmm", "[4] [6, 4] [4, 4]"]
    assert row.calls == 4 and 0 < row.cpu_own <= row.cpu_total
    assert (row.gpu_own, row.gpu_total) == (None, None)  # unknown, which is not nothing
    assert rows["Optimizer.step#SGD.step", ""].calls == 4  # whole steps
    assert not [name for name, _ in rows if name.startswith(("module:", "phase:", "Profiler"))]


def test_modules_with_their_backward_passes(train: Train, step: Callable[[], None]) -> None:
    rows = {row.path: row for row in table(train, step).modules}
    assert list(rows) == ["Net", "Net.body", "Net.body.0", "Net.body.1", "Net.head"]
    assert [row.kind for row in rows.values()] == ["Net", "Sequential", "Linear", "ReLU", "Linear"]
    assert all(row.calls == 4 and row.forward_cpu > 0 for row in rows.values())
    assert all(row.backward_cpu > 0 and row.forward_gpu is None for row in rows.values())
    net, head, body = rows["Net"], rows["Net.head"], rows["Net.body"]
    assert net.forward_cpu > body.forward_cpu + head.forward_cpu
    assert net.backward_cpu == pytest.approx(body.backward_cpu + head.backward_cpu)
    whole = net.forward_cpu + net.backward_cpu
    assert sum(row.own_cpu for row in rows.values()) == pytest.approx(whole)


def test_two_models_of_one_class(train: Train, jobs: Any) -> None:
    models = [jobs.Net(), jobs.Net()]
    optimizer = jobs.sgd(*models)

    def step() -> None:
        optimizer.zero_grad()
        x, y = jobs.batch()
        (jobs.plain_loss(models[0], x, y) + jobs.plain_loss(models[1], x, y)).backward()
        optimizer.step()

    names = {row.path for row in table(train, step).modules}
    assert {"Net", "Net.head", "Net#2", "Net#2.head"} <= names


@pytest.fixture
def compiler(torch: Any) -> None:
    """torch.compile changes torch.nn.Module at its first use, for good, and not to our harm."""
    torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))


@pytest.mark.parametrize("how", ["wrapped", "in place", "inside"])
def test_a_compiled_module_is_shown_as_a_whole(
    how: str, compiler: None, train: Train, jobs: Any, torch: Any
) -> None:
    """And is not compiled anew."""
    from torch._dynamo.utils import get_compilation_metrics

    torch._dynamo.reset()
    net = jobs.Net()
    if how == "in place":
        net.compile(backend="aot_eager")
        model = net
    else:
        model = torch.compile(net, backend="aot_eager")
    if how == "inside":
        model = jobs.Task(model)
    optimizer = jobs.sgd(model)

    def step() -> None:
        x, y = jobs.batch()
        optimizer.zero_grad()
        loss = model(x, y) if how == "inside" else jobs.plain_loss(model, x, y)
        loss.backward()
        optimizer.step()
        compiled.append(len(get_compilation_metrics()))

    compiled: list[int] = []
    names = [row.path for row in table(train, step).modules]
    path = "Task.model" if how == "inside" else "Net"
    assert [name for name in names if name not in ("Task", "Task.criterion")] == [path]
    assert compiled[-1] == compiled[5]  # since before profiling
