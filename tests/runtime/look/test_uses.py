from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hotloop.runtime.look.operators import OperatorProbe
from hotloop.runtime.watching import Watch


@pytest.fixture
def only_read(torch: Any, unharmed: None) -> Any:
    """Of the lines of a step, those whose results only Python takes up."""

    def run(step: Callable[[], None]) -> set[str]:
        watch = Watch(torch)
        probe = OperatorProbe(torch)
        probe.attach(watch.seams)
        watch.driver.attach()
        probe.begin()
        try:
            step()
            step()
        finally:
            found = probe.end(2)
            watch.driver.detach()
        return {line.place.source.partition("  # ")[2] for line in found.lines if line.only_read}

    return run


def test_what_is_printed_and_what_is_trained_on(torch: Any, only_read: Any) -> None:
    weight = torch.ones(3, requires_grad=True)
    kept = torch.zeros(3)

    def step() -> None:
        x = torch.rand(3)  # drawn
        spread = x.std()  # only for the next
        assert spread.item() >= 0  # read
        (weight * x).sum().backward()  # trained
        norm = weight.grad.norm()  # used to clip
        weight.grad.mul_(1 / max(float(norm), 1.0))  # clipped
        kept.add_(weight.detach())  # averaged
        torch.rand(3)  # for nobody

    assert only_read(step) == {"only for the next", "read"}


def test_to_pick_parts_is_no_use_of_the_whole(torch: Any, only_read: Any) -> None:
    layer = torch.nn.Linear(4, 4)

    def step() -> None:
        out = layer(torch.ones(8, 4))  # passes
        ordered = out.detach().flatten().sort().values  # in order
        low, high = ordered[3], ordered[-3]  # picked
        assert low.item() <= high.item()  # read
        mask = out.detach() > 0  # a mask
        some = mask[:4]  # of it
        (out[:4] * some).sum().backward()  # learns

    assert only_read(step) == {"in order", "read"}


def test_a_condition_is_read_and_what_it_guards_is_not(torch: Any, only_read: Any) -> None:
    layer = torch.nn.Linear(2, 2)

    def step() -> None:
        out = layer(torch.ones(1, 2))  # passes
        if (out.abs() > 9).any():  # a condition
            raise AssertionError
        out.sum().backward()  # learns

    assert only_read(step) == {"a condition"}
