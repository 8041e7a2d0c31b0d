from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hotloop.depth import MemoryGrowth
from hotloop.runtime.deep.growth import growth
from hotloop.runtime.look.frames import Frames
from tests.runtime.deep.conftest import Train

Step = Callable[[], None]


def by_line(growth: MemoryGrowth | None) -> dict[str, tuple[int, int]]:
    assert growth is not None
    return {line.place.source: (line.bytes, line.count) for line in growth.lines}


def test_a_line_that_keeps_objects(train: Train, step: Step) -> None:
    kept: list[Any] = []

    def leaking() -> None:
        step()
        kept.append(bytearray(5000))
        _ = bytearray(100_000)

    report = train("python").until_seen(leaking)
    found = by_line(report.growth)
    size, _ = found["kept.append(bytearray(5000))"]
    assert 2 * 5000 <= size < 2 * 6000
    assert "_ = bytearray(100_000)" not in found


def test_a_line_that_keeps_tensors(train: Train, step: Step, torch: Any) -> None:
    kept: list[Any] = []

    def leaking() -> None:
        step()
        kept.append(torch.ones(1000)[:10])
        _ = torch.ones(1000)

    report = train("python").until_seen(leaking)
    assert by_line(report.tensor_growth) == {"kept.append(torch.ones(1000)[:10])": (2 * 4000, 2)}


def test_what_autograd_keeps_because_of_a_loss(train: Train, jobs: Any, torch: Any) -> None:
    losses: list[Any] = []
    model = jobs.Net()
    optimizer = jobs.sgd(model)

    def step() -> None:
        optimizer.zero_grad()
        hidden = model(torch.randn(64, 4)).exp()
        loss = hidden.mean()
        loss.backward(retain_graph=True)
        optimizer.step()
        losses.append(loss)

    found = by_line(train("python").until_seen(step).tensor_growth)
    size, _ = found["hidden = model(torch.randn(64, 4)).exp()"]
    assert size >= 2 * 64 * 4


def test_a_job_that_keeps_nothing_does_not_grow(train: Train, step: Step) -> None:
    report = train("python").until_seen(step)
    assert by_line(report.tensor_growth) == {}
    assert sum(size for size, _ in by_line(report.growth).values()) < 2000


def test_a_compiled_job_is_compiled_again_afterwards(train: Train, step: Step, torch: Any) -> None:
    pytest.importorskip("torch._dynamo")
    train("python").until_seen(step)
    assert torch._dynamo.eval_frame._stance.stance == "default"


def test_the_largest_first_and_what_shrank_not_at_all() -> None:
    before = {("a.py", 1): (1000, 10), ("b.py", 1): (500, 1)}
    after = {("a.py", 1): (1200, 12), ("b.py", 1): (100, 1), ("c.py", 1): (900, 3)}
    found = [(one.place.file, one.bytes, one.count) for one in growth(before, after, Frames())]
    assert found == [("c.py", 900, 3), ("a.py", 200, 2)]
