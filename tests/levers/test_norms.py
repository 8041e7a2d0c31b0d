"""Norms rewritten in captured graphs, against torch's own."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from hotloop.levers.channels_last import ChannelsLast
from hotloop.levers.compile import Compile


@pytest.fixture
def torch() -> Any:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    torch._dynamo.reset()
    return torch


def order(torch: Any, dimensions: int) -> Any:
    return {4: torch.channels_last, 5: torch.channels_last_3d}[dimensions]


def compiled(torch: Any, model: Any, found: list[int]) -> Callable[..., Any]:
    """With its norms rewritten, and differentiated; no code is made of it, which takes long."""
    from hotloop.levers.graphs import Captured
    from hotloop.levers.norms import keep_order

    def rewriting(graph: Any, inputs: Any) -> Any:
        found.append(keep_order(torch, Captured(graph, inputs, None)))
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)

    made: Callable[..., Any] = torch.compile(model, backend=rewriting)
    return made


def norms(torch: Any) -> dict[str, Any]:
    nn = torch.nn
    return {
        "instance": nn.InstanceNorm2d(6),
        "instance with factors": nn.InstanceNorm2d(6, affine=True, eps=0.1),
        "groups": nn.GroupNorm(3, 6),
        "groups without factors": nn.GroupNorm(2, 6, affine=False, eps=0.1),
        "one group": nn.GroupNorm(1, 6),
        "volumes": nn.InstanceNorm3d(6, affine=True),
        "groups of volumes": nn.GroupNorm(2, 6),
    }


def batch(torch: Any, name: str, format: Any) -> Any:
    sizes = (2, 6, 3, 4, 5) if "volumes" in name else (2, 6, 4, 5)
    made = torch.randn(sizes).to(format) * 3 + 1
    return made.contiguous(memory_format=order(torch, len(sizes)))


@pytest.mark.parametrize("name", list(norms(pytest.importorskip("torch"))))
@pytest.mark.parametrize("number", ["float32", "bfloat16"])
def test_it_computes_the_same_and_leaves_the_channels_last(
    name: str, number: str, torch: Any
) -> None:
    plain = norms(torch)[name]
    for weight in plain.parameters():
        weight.data.normal_()
    format = getattr(torch, number)
    other = copy.deepcopy(plain)
    x = batch(torch, name, format).requires_grad_()
    y = x.detach().clone().requires_grad_()
    found: list[int] = []
    if number == "bfloat16":  # a weight in 32 bits with a batch in 16 is what GPUs take
        plain, other = plain.to(format), other.to(format)

    expected, got = plain(x), compiled(torch, other, found)(y)

    assert found == [1]
    assert got.is_contiguous(memory_format=order(torch, x.dim()))
    assert got.dtype == expected.dtype
    close = {"rtol": 2e-2, "atol": 4e-2} if number == "bfloat16" else {"rtol": 1e-4, "atol": 1e-5}
    torch.testing.assert_close(got, expected, **close)
    towards = torch.randn_like(expected)
    expected.backward(towards)
    got.backward(towards)
    torch.testing.assert_close(y.grad, x.grad, **close)
    for mine, theirs in zip(other.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine.grad, theirs.grad, rtol=5e-2, atol=close["atol"] * 5)


@pytest.mark.parametrize("groups", [1, 2])
def test_what_has_no_pixels_is_left_to_torch(groups: int, torch: Any) -> None:
    found: list[int] = []
    norm, x = torch.nn.GroupNorm(groups, 6), torch.randn(3, 6)
    torch.testing.assert_close(compiled(torch, norm, found)(x), norm(x))
    assert found == [0]


def test_averages_that_are_kept_are_left_to_torch(torch: Any) -> None:
    found: list[int] = []
    norm = torch.nn.InstanceNorm2d(6, track_running_stats=True)
    compiled(torch, norm, found)(batch(torch, "", torch.float32))
    assert found == [0]
    assert float(norm.running_mean.abs().sum()) > 0


def test_a_graph_that_relies_on_the_old_order_is_left_alone(torch: Any) -> None:
    class Flat(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.InstanceNorm2d(6)

        def forward(self, x: Any) -> Any:
            return self.norm(x).view(x.shape[0], -1)

    found: list[int] = []
    x = batch(torch, "", torch.float32)
    model = Flat()
    assert torch.equal(compiled(torch, model, found)(x), model(x))
    assert found == [0]


def network(torch: Any) -> Any:
    nn = torch.nn
    norm = nn.InstanceNorm2d(4, affine=True)
    first = nn.Conv2d(3, 4, 3), norm, nn.LeakyReLU(inplace=True)
    return nn.Sequential(*first, nn.Conv2d(4, 4, 3), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten())


def test_channels_last_has_it_done_in_compiled_code_and_says_so(torch: Any) -> None:
    from tests.levers.jobs import losses

    lever = ChannelsLast()
    model, sizes = network(torch), (2, 3, 8, 8)
    plain = losses(copy.deepcopy(model), sizes)
    assert losses(model, sizes, lever, Compile()) == pytest.approx(plain, rel=1e-4)
    assert lever.receipt().evidence == {"convolutions": 2, "converted": 2, "norms": 2}
