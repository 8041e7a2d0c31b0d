"""Nearest upsampling as repetition, against torch's own."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from hotloop.inspection import Inspection, Operators
from hotloop.levers import graphs
from hotloop.levers.channels_last import ChannelsLast
from hotloop.levers.compile import Compile
from hotloop.levers.fused_upsampling import FACTORS, FusedUpsampling

CASES = 24


@pytest.fixture(autouse=True)
def torch(fresh_torch: Any) -> Iterator[Any]:
    with fresh_torch.backends.mkldnn.flags(enabled=False):
        yield fresh_torch


def rewritten(function: Any, **how: Any) -> tuple[Any, FusedUpsampling]:
    from tests.levers import jobs

    lever = FusedUpsampling()
    return jobs.rewritten(lever, function, **how), lever


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("case", range(CASES))
def test_it_computes_the_same(case: int, torch: Any) -> None:
    chance = random.Random(case)
    directions = chance.choice((1, 2, 3))
    before = [chance.randint(1, 5) for _ in range(directions)]
    factors = [chance.choice(FACTORS[:4]) for _ in range(directions)]
    after = [size * factor for size, factor in zip(before, factors, strict=True)]
    mode = chance.choice(("nearest", "nearest-exact"))
    how = chance.choice(({"size": after}, {"scale_factor": [float(one) for one in factors]}))
    dtype = chance.choice((torch.float32, torch.bfloat16))
    x = torch.randn(2, 3, *before).to(dtype)
    if directions > 1 and chance.random() < 0.5:
        order = torch.channels_last if directions == 2 else torch.channels_last_3d
        x = x.contiguous(memory_format=order)

    def enlarged(x: Any) -> Any:
        return torch.nn.functional.interpolate(x, mode=mode, **how)

    compiled, lever = rewritten(enlarged)
    both = []
    for function in (enlarged, compiled):
        leaf = x.clone().requires_grad_()
        made = function(leaf)
        made.backward(torch.arange(made.numel()).reshape(made.shape).to(dtype))
        both.append((made, leaf.grad))
    (expected, gradient), (got, own) = both

    assert torch.equal(got, expected)
    close = {"rtol": 2e-2, "atol": 0.0} if dtype is torch.bfloat16 else {"rtol": 1e-5, "atol": 0.0}
    torch.testing.assert_close(own, gradient, **close)
    assert lever.receipt().evidence["upsamplings"] == 1


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("directions", [2, 3])
@pytest.mark.parametrize("last", [True, False])
def test_the_result_has_the_order_of_its_input(directions: int, last: bool, torch: Any) -> None:
    x = torch.randn(2, 3, *[4] * directions)
    order = {2: torch.channels_last, 3: torch.channels_last_3d}[directions]
    if last:
        x = x.contiguous(memory_format=order)
    if last and directions == 3 and torch.__version__ < "2.13":
        pytest.skip("torch takes it for one in the plain order, which a graph's result then keeps")
    compiled, _ = rewritten(torch.nn.Upsample(scale_factor=2))
    made = compiled(x)
    assert made.is_contiguous(memory_format=order if last else torch.contiguous_format)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("size", "factor"), [(1, 4), (1, 1), (3, 1)])
def test_what_is_written_to_the_result_is_not_written_to_the_input(
    size: int, factor: int, torch: Any
) -> None:
    def generated(x: Any) -> Any:
        return torch.nn.functional.interpolate(x, scale_factor=float(factor)).relu_()

    x = torch.randn(2, 3, size, size)
    before = x.clone()
    compiled, _ = rewritten(generated)
    assert torch.equal(compiled(x), generated(before))
    assert torch.equal(x, before)


def upsampled(**how: Any) -> Any:
    import torch

    return lambda x: torch.nn.functional.interpolate(x, **how)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"scale_factor": 3}, "it is not by 2, 4, 8 or 16"),
        ({"scale_factor": 2.1}, "it is not by 2, 4, 8 or 16"),
        ({"scale_factor": (2, 2.1)}, "it is not by 2, 4, 8 or 16"),
        ({"size": (7, 8)}, "it is not by 2, 4, 8 or 16"),
        ({"size": (2, 2)}, "it is not by 2, 4, 8 or 16"),
        ({"scale_factor": 2, "mode": "bilinear"}, "it is not to the nearest"),
    ],
)
def test_what_is_something_else_is_left_alone(how: dict[str, Any], why: str, torch: Any) -> None:
    x = torch.randn(1, 2, 4, 4)
    compiled, lever = rewritten(upsampled(**how))
    assert torch.equal(compiled(x), upsampled(**how)(x))
    assert lever.receipt().reason == f"upsampling was found, but {why}"


@pytest.mark.usefixtures("quick")
def test_a_factor_that_is_computed_again_may_be_any_that_comes_to_it(torch: Any) -> None:
    how = {"scale_factor": 2.1, "recompute_scale_factor": True}
    x = torch.arange(4.0).reshape(1, 1, 4)
    compiled, lever = rewritten(upsampled(**how))
    assert torch.equal(compiled(x), upsampled(**how)(x))
    assert lever.receipt().applied


@pytest.mark.usefixtures("quick")
def test_where_the_graph_wants_another_order_the_result_has_that(torch: Any) -> None:
    """The weights have their channels last; but what comes of the vector is flattened by view."""

    class Both(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.convolution = torch.nn.Conv2d(4, 2, 3).to(memory_format=torch.channels_last)

        def forward(self, x: Any) -> Any:
            large = torch.nn.functional.interpolate(x.view(-1, 4, 4, 4), scale_factor=2)
            return self.convolution(large).sum() + large.view(len(x), -1).sum()

    model, x = Both(), torch.randn(2, 64)
    compiled, lever = rewritten(model)
    torch.testing.assert_close(compiled(x), model(x))
    assert lever.receipt().applied


def test_it_keeps_the_format_that_autocast_gives_it_on_a_gpu(torch: Any) -> None:
    from torch._subclasses import FakeTensorMode

    graph = torch.fx.Graph()
    given = graph.placeholder("x")
    function = torch.nn.functional.interpolate
    made = graph.call_function(function, (given,), {"scale_factor": 2})
    graph.output(made)
    lever = FusedUpsampling()
    lever._torch = torch
    with FakeTensorMode(), torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
        if not torch.is_autocast_enabled("cuda"):  # torch sees that there is none
            torch.set_autocast_enabled("cuda", True)
        x = torch.empty(2, 3, 4, 4, device="cuda", dtype=torch.bfloat16)
        given.meta["example_value"], made.meta["example_value"] = x, function(x, scale_factor=2)
        module = torch.fx.GraphModule({}, graph)
        assert module(x).dtype == torch.float32
        captured = graphs.Captured(module, [x], None)
        lever._rewrite((captured,), {})
        captured.runs = 1
        assert lever.receipt().applied
        assert module(x).dtype == torch.float32


@pytest.mark.usefixtures("quick")
def test_sizes_that_change_are_left_alone(torch: Any) -> None:
    def doubled(x: Any) -> Any:
        return torch.nn.functional.interpolate(x, scale_factor=2.0)

    compiled, lever = rewritten(doubled, dynamic=True)
    assert compiled(torch.randn(1, 2, 4, 6)).shape == (1, 2, 8, 12)
    assert "its sizes change" in lever.receipt().reason


def network(torch: Any) -> Any:
    nn = torch.nn
    first = nn.Conv2d(3, 4, 3, padding=1), nn.GroupNorm(2, 4), nn.ReLU()
    return nn.Sequential(*first, nn.Upsample(scale_factor=2), nn.Conv2d(4, 2, 3, padding=1))


@pytest.mark.parametrize("more", [(), (ChannelsLast,)])
def test_a_compiled_job_trains_the_same_and_says_what_was_done(more: Any, torch: Any) -> None:
    """By torch's real compiler."""
    from tests.levers.jobs import losses

    lever = FusedUpsampling()
    others = [one() for one in more]
    model, sizes = network(torch), (2, 3, 8, 8)
    plain = losses(copy.deepcopy(model), sizes)
    assert losses(model, sizes, *others, Compile(), lever) == pytest.approx(plain, rel=1e-4)
    assert lever.receipt().applied
    assert lever.receipt().evidence["upsamplings"] == 1


def test_without_a_graph_or_upsampling_it_says_so(quick: None, torch: Any) -> None:
    assert "no graph was captured" in FusedUpsampling().receipt().reason
    compiled, lever = rewritten(torch.sin)
    compiled(torch.ones(3))
    assert "not seen to have upsampling" in lever.receipt().reason


class TestExpected:
    def of(self, *names: str, looked: bool = True) -> Any:
        from tests.levers.jobs import seen

        operators = Operators(by_name=dict.fromkeys(names, 3)) if looked else None
        return FusedUpsampling.expected(replace(seen(), inspection=Inspection(operators=operators)))

    def test_it_is_for_a_job_that_upsamples(self) -> None:
        assert self.of("addmm", "upsample_nearest3d").share > 0
        assert self.of("_upsample_nearest_exact2d").share > 0

    def test_it_is_for_no_other(self) -> None:
        assert "not seen to upsample" in self.of("addmm", "upsample_bilinear2d").reason
        assert "no run looked for" in self.of(looked=False).reason
