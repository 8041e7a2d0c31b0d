"""Convolutions of odd channels, padded in a captured graph, against the plain computation."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from hotloop.levers import graphs
from hotloop.levers.compile import Compile
from hotloop.levers.padded_convolutions import has_odd_channels, pad_convolutions
from hotloop.levers.shape_padding import ShapePadding

CASES = 16
CLOSE = {"float32": 1e-5, "bfloat16": 3e-2}


@pytest.fixture(autouse=True)
def torch(fresh_torch: Any) -> Iterator[Any]:
    """Without oneDNN: see the tests of bf16."""
    with fresh_torch.backends.mkldnn.flags(enabled=False):
        yield fresh_torch


def computed(torch: Any, model: Any, call: Any, x: Any, dtype: str) -> list[Any]:
    """The result, and every gradient."""
    model.zero_grad()
    leaf = x.detach().clone(memory_format=torch.preserve_format).requires_grad_()
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == "bfloat16"):
        result = call(leaf)
    result.float().square().mean().backward()
    gradients = [p.grad.clone(memory_format=torch.preserve_format) for p in model.parameters()]
    return [result.detach(), leaf.grad, *gradients]


def strides(tensor: Any) -> list[int]:
    """Where a dimension has one place alone, the stride means nothing."""
    both = zip(tensor.stride(), tensor.shape, strict=True)
    return [stride for stride, size in both if size > 1]


def both_ways(torch: Any, model: Any, x: Any, dtype: str = "float32") -> int:
    """How many were padded; results must be those of the model itself."""
    padded: list[int] = []

    def backend(graph: Any, inputs: Any) -> Any:
        padded.append(pad_convolutions(torch, graphs.Captured(graph, inputs, None)))
        return graph.forward

    plain = computed(torch, model, model, x, dtype)
    other = computed(torch, model, torch.compile(model, backend=backend), x, dtype)
    for one, two in zip(plain, other, strict=True):
        assert (one.shape, one.dtype, strides(one)) == (two.shape, two.dtype, strides(two))
        apart = (one.double() - two.double()).abs().max() / one.double().abs().max()
        assert apart < CLOSE[dtype]
    return sum(padded)


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize("case", range(CASES))
def test_of_any_size(case: int, dtype: str, torch: Any) -> None:
    draw = random.Random(f"{case} {dtype}")
    dimensions = draw.choice([1, 2, 3])
    inputs, outputs = (draw.choice([1, 2, 3, 8, 10, 16]) for _ in range(2))
    kind = getattr(torch.nn, f"Conv{dimensions}d")
    how = {
        "stride": draw.choice([1, 2]),
        "padding": draw.choice([0, 1]),
        "dilation": draw.choice([1, 2]),
        "bias": draw.random() < 0.5,
        "padding_mode": draw.choice(["zeros", "zeros", "reflect"]),
    }
    model = kind(inputs, outputs, draw.choice([1, 3]), **how)
    x = torch.randn(2, inputs, *(draw.choice([5, 6, 9]) for _ in range(dimensions)))
    last = {2: torch.channels_last, 3: torch.channels_last_3d}.get(dimensions)
    if last is not None and draw.random() < 0.5:
        model, x = model.to(memory_format=last), x.contiguous(memory_format=last)
    needed = 8 if dtype == "bfloat16" else 4
    assert both_ways(torch, model, x, dtype) == bool(inputs % needed or outputs % needed)


def test_what_is_left_alone(torch: Any) -> None:
    nn = torch.nn
    assert both_ways(torch, nn.Conv2d(6, 6, 3, groups=6), torch.randn(2, 6, 8, 8)) == 0
    assert both_ways(torch, nn.ConvTranspose2d(3, 5, 3), torch.randn(2, 3, 8, 8)) == 0
    assert both_ways(torch, nn.Conv2d(3, 5, 3), torch.randn(3, 8, 8)) == 0  # no batch
    assert both_ways(torch, nn.Conv2d(3, 5, 3).double(), torch.randn(2, 3, 8, 8).double()) == 0


def test_padding_by_name(torch: Any) -> None:
    assert both_ways(torch, torch.nn.Conv2d(3, 5, 3, padding="same"), torch.randn(2, 3, 8, 8)) == 1


def test_arguments_by_name(torch: Any) -> None:
    class Named(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(5, 3, 3, 3))
            self.bias = torch.nn.Parameter(torch.randn(5))

        def forward(self, x: Any) -> Any:
            return torch.nn.functional.conv2d(x, stride=2, bias=self.bias, weight=self.weight)

    assert both_ways(torch, Named(), torch.randn(2, 3, 8, 8)) == 1


def test_which_models_have_some(torch: Any) -> None:
    nn = torch.nn
    assert has_odd_channels(torch, nn.Conv2d(3, 64, 7))
    assert has_odd_channels(torch, nn.Conv3d(32, 2, 1))
    assert not has_odd_channels(torch, nn.Conv2d(64, 64, 3))
    assert not has_odd_channels(torch, nn.Conv2d(6, 6, 3, groups=6))
    assert not has_odd_channels(torch, nn.ConvTranspose2d(3, 5, 3))
    assert not has_odd_channels(torch, nn.Linear(3, 5))


def test_in_a_job(torch: Any, jobs: Any) -> None:
    """By the compiler itself, forward and backward."""

    def train() -> list[float]:
        torch.manual_seed(0)
        model = torch.nn.Sequential(
            torch.nn.Conv2d(3, 8, 3, 2), torch.nn.ReLU(), torch.nn.Conv2d(8, 10, 3)
        )
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x = torch.randn(2, 3, 9, 9)
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        return losses

    plain = train()
    lever = ShapePadding()
    with jobs.under(Compile(), lever):
        assert train() == pytest.approx(plain, rel=1e-4)
    receipt = lever.receipt()
    assert receipt.applied
    assert receipt.evidence["convolutions"] == 2
    assert receipt.evidence["products"] == 0
