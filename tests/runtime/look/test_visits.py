from __future__ import annotations

from typing import Any

from hotloop.runtime.look.operators import OperatorProbe
from hotloop.runtime.watching import Watch


def repeats(torch: Any, step: Any) -> dict[str, int]:
    """By what the line's comment says."""
    probe = OperatorProbe(torch)
    probe.attach(Watch(torch).seams)
    probe.begin()
    step()
    found = probe.end(1).lines
    return {line.place.source.partition("  # ")[2]: line.repeats for line in found}


def scaled(x: Any) -> Any:
    return x * 2  # a helper


def test_a_cell_is_repeated_and_layers_are_not(torch: Any, unharmed: None) -> None:
    class Cell(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = torch.nn.Linear(2, 2)

        def forward(self, x: Any) -> Any:
            return scaled(self.inner(x)) + x  # its own

    cell, layers = Cell(), [Cell() for _ in range(9)]

    def step() -> None:
        x = torch.ones(1, 2)  # once
        for _ in range(7):
            x = cell(x)
        total = sum(one * one for one in x.flatten().repeat(5))  # by element
        total.backward()  # back

    assert repeats(torch, step) == {
        "once": 1,
        "its own": 7,
        "a helper": 7,
        "by element": 10,
        "back": 1,
    }

    def deep() -> None:
        x = torch.ones(1, 2)  # once
        for layer in layers:
            x = layer(x)

    assert repeats(torch, deep) == {"once": 1, "its own": 1, "a helper": 1}
