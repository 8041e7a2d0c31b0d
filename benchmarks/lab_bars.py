"""What the experiments must show on an H200, and whether they did. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hotloop.experiments.techniques import average

SAME_LOSS = 0.01
"""Of the loss, averaged over a training as it is and one under all techniques."""


@dataclass(frozen=True)
class Bar:
    what: str
    value: float | None
    """None: it could not be measured."""
    bound: float
    at_least: bool = True

    @property
    def held(self) -> bool:
        if self.value is None:
            return False
        return self.value >= self.bound if self.at_least else self.value <= self.bound

    @property
    def line(self) -> str:
        sign = "≥" if self.at_least else "≤"
        value = "not measured" if self.value is None else f"{self.value:.4g}"
        return f"{'held  ' if self.held else 'MISSED'}  {self.what}: {value} ({sign} {self.bound})"


def bars(figure: str, data: dict[str, Any]) -> list[Bar]:
    """`figure`: its name. `data`: what the experiment tells beside its table."""
    return list(_BARS[figure](data))


def _fusion(data: dict[str, Any]) -> Iterator[Bar]:
    gains = data["gains"]
    label = max(gains, key=gains.get, default="")
    yield Bar(f"times as fast as one by one ({label})", gains.get(label), 60.0)
    apart = data["weights"].get(label, {}).get("mean_difference")
    tolerance = data["tolerance"].get(label, 0.0)
    yield Bar("its weights apart, by its format's tolerance", apart, tolerance, at_least=False)


def _techniques(data: dict[str, Any]) -> Iterator[Bar]:
    yield Bar(f"times as fast as PyTorch starts ({data['best']})", data["gain"], 11.0)
    yield Bar("of the memory before", data["memory_share"], 0.40, at_least=False)
    before, after = data["losses"].values()
    known = "course" in before and "course" in after
    apart = abs(average(after) / average(before) - 1) if known else None
    yield Bar("loss apart", apart, SAME_LOSS, at_least=False)


def _scaling(data: dict[str, Any]) -> Iterator[Bar]:
    for start, bound in (("PyTorch's defaults", 3.8), ("strict float32", 18.0)):
        found = [one["gain"] for one in data["gains"] if one["from"] == start]
        yield Bar(f"times as fast as {start}", max(found, default=None), bound)


def _ladder(data: dict[str, Any]) -> Iterator[Bar]:
    yield Bar("times as fast with the batch of 32 kept", data["kept"], 2.7)
    yield Bar(f"times as fast with the batch free ({data['largest']})", data["free"], 4.5)


def _ladder_256(data: dict[str, Any]) -> Iterator[Bar]:
    yield Bar("times as fast with the batch of 256 kept", data["kept"], 3.3)


def _best(data: dict[str, Any]) -> Iterator[Bar]:
    behind = (data["exhaustive"] or {}).get("behind")
    yield Bar("behind the fastest of all settings", behind, 0.03, at_least=False)
    yield Bar("of all settings were run", data["share"], 0.25, at_least=False)


_BARS = {
    "fusion": _fusion,
    "techniques": _techniques,
    "scaling": _scaling,
    "ladder": _ladder,
    "ladder-256": _ladder_256,
    "best": _best,
}
FIGURES = tuple(_BARS)
