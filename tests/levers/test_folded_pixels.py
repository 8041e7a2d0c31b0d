"""Convolutions over folded pixels, against torch's own."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from hotloop.levers.bf16 import Bf16
from hotloop.levers.channels_last import ChannelsLast
from hotloop.levers.compile import Compile
from hotloop.levers.folded_pixels import FoldedPixels

CASES = 24


@pytest.fixture(autouse=True)
def torch(fresh_torch: Any) -> Iterator[Any]:
    with fresh_torch.backends.mkldnn.flags(enabled=False):
        yield fresh_torch


def rewritten(function: Any, **how: Any) -> tuple[Any, FoldedPixels]:
    from tests.levers import jobs

    lever = FoldedPixels()
    return jobs.rewritten(lever, function, **how), lever


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("case", range(CASES))
def test_it_computes_the_same(case: int, torch: Any) -> None:
    chance = random.Random(case)
    directions = chance.choice((2, 2, 3))
    stride = [chance.choice((1, 2, 2, 3, 4)) for _ in range(directions)]
    stride[-2:] = [max(2, one) for one in stride[-2:]]
    kernel = [chance.randint(one, one + 5) for one in stride]
    padding = [chance.randint(0, one // 2) for one in kernel]
    sizes = [one + chance.randint(0, 9) for one in kernel]
    convolution = (torch.nn.Conv2d if directions == 2 else torch.nn.Conv3d)(
        chance.randint(1, 4), 5, kernel, stride, padding, bias=chance.random() < 0.5
    ).double()
    order = {2: torch.channels_last, 3: torch.channels_last_3d}[directions]
    if chance.random() < 0.5:
        convolution = convolution.to(memory_format=order)
    x = torch.randn(2, convolution.in_channels, *sizes).double()
    compiled, lever = rewritten(convolution)
    both = []
    for function in (convolution, compiled):
        leaf = x.clone().requires_grad_()
        convolution.zero_grad()
        made = function(leaf)
        made.backward(torch.arange(made.numel()).reshape(made.shape).double())
        both.append([made, leaf.grad, *(one.grad for one in convolution.parameters())])
    torch.testing.assert_close(both[1], both[0])
    assert lever.receipt().evidence == {"convolutions": 1, "left_alone": 0, "runs": 1}


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("last", [True, False])
def test_what_is_computed_lies_as_it_did(last: bool, torch: Any) -> None:
    order = torch.channels_last if last else torch.contiguous_format
    stem = torch.nn.Conv2d(3, 8, 7, 2, 3).to(memory_format=order)
    with torch.backends.mkldnn.flags(enabled=True):  # which follows the weights
        compiled, lever = rewritten(stem)
        x = torch.randn(2, 3, 32, 32)
        assert compiled(x).stride() == stem(x).stride()
        assert compiled(x).is_contiguous(memory_format=order)
        assert lever.receipt().applied


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "asked",
    [
        {"stride": 2},
        {"stride": (2,)},
        {"stride": [2, 3]},
        {"stride": 2, "padding": 3, "bias": 1},
        {"stride": (2, 2), "padding": (1, 2)},
    ],
)
def test_however_it_is_written(asked: dict[str, Any], torch: Any) -> None:
    weight, bias = torch.randn(4, 3, 7, 5).double(), torch.randn(4).double()
    given = {**asked, "bias": bias} if "bias" in asked else asked

    def convolved(x: Any) -> Any:
        return torch.nn.functional.conv2d(x, weight, **given)

    x = torch.randn(2, 3, 20, 21).double()
    compiled, lever = rewritten(convolved)
    torch.testing.assert_close(compiled(x), convolved(x))
    assert lever.receipt().applied


@pytest.mark.usefixtures("quick")
def test_weights_that_are_computed_and_pixels_that_are_mirrored(torch: Any) -> None:
    nn = torch.nn
    for model in (
        nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 4, 7, 2, 3)),
        nn.Conv2d(3, 4, 7, 2, 3, padding_mode="reflect"),
    ):
        torch._dynamo.reset()
        compiled, lever = rewritten(model.double())
        torch.testing.assert_close(compiled(x := torch.randn(2, 3, 16, 16).double()), model(x))
        assert lever.receipt().applied


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("convolution", "why"),
    [
        (lambda nn: nn.Conv2d(3, 4, 3, 1, 1), "it takes every pixel, or leaves some out"),
        (lambda nn: nn.Conv2d(3, 4, 1, 2), "it takes every pixel, or leaves some out"),
        (lambda nn: nn.Conv2d(3, 4, 3, padding="same"), "it takes every pixel"),
        (lambda nn: nn.Conv2d(3, 4, 3, 2, dilation=2), "it takes channels in groups, or pixels"),
        (lambda nn: nn.Conv2d(4, 4, 3, 2, groups=2), "it takes channels in groups, or pixels"),
    ],
)
def test_what_is_something_else_is_left_alone(convolution: Any, why: str, torch: Any) -> None:
    model = convolution(torch.nn)
    x = torch.randn(2, model.in_channels, 9, 9)
    compiled, lever = rewritten(model)
    assert torch.equal(compiled(x), model(x))
    reason = lever.receipt().reason
    assert reason.startswith(f"a convolution over few channels was found, but {why}")


@pytest.mark.usefixtures("quick")
def test_without_padding_said_by_a_word(torch: Any) -> None:
    model = torch.nn.Conv2d(3, 4, 4, 2, padding="valid").double()
    x = torch.randn(2, 3, 9, 9).double()
    compiled, lever = rewritten(model)
    torch.testing.assert_close(compiled(x), model(x))
    assert lever.receipt().applied


def unseen(torch: Any) -> dict[str, tuple[Any, tuple[int, ...]]]:
    nn = torch.nn
    return {
        "one picture": (nn.Conv2d(3, 4, 7, 2), (3, 9, 9)),
        "many channels": (nn.Conv2d(8, 4, 7, 2), (2, 8, 9, 9)),
        "each channel by itself": (nn.Conv2d(8, 8, 7, 2, groups=8), (2, 8, 9, 9)),
    }


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("case", ["one picture", "many channels", "each channel by itself"])
def test_others_are_not_spoken_of(case: str, torch: Any) -> None:
    model, shape = unseen(torch)[case]
    compiled, lever = rewritten(model)
    assert torch.equal(compiled(x := torch.randn(shape)), model(x))
    assert "not seen to have a convolution over few channels" in lever.receipt().reason


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("last", [True, False])
def test_sizes_that_change_are_left_alone_and_batches_may(last: bool, torch: Any) -> None:
    order = torch.channels_last if last else torch.contiguous_format
    model = torch.nn.Conv2d(3, 4, 7, 2, 3).double().to(memory_format=order)
    compiled, lever = rewritten(model, dynamic=True)
    compiled(torch.randn(2, 3, 14, 18).double())
    assert "its sizes change" in lever.receipt().reason
    torch._dynamo.reset()
    compiled, lever = rewritten(model)
    before = torch._dynamo.utils.counters["stats"]["unique_graphs"]
    for count in (2, 3, 5, 7, 9):
        x = torch.randn(count, 3, 14, 18).double()
        torch.testing.assert_close(compiled(x), model(x))
    assert lever.receipt().evidence["runs"] == 5
    # One for the first, one for all others, as without it.
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == before + 2


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("how", ["view", "leave", "as_strided"])
def test_where_somebody_relies_on_the_order_it_stays(how: str, torch: Any) -> None:
    """A stem in the plain order, before convolutions whose weights have another."""

    class Mixed(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.stem = torch.nn.Conv2d(3, 4, 4, 2)
            self.later = torch.nn.Conv2d(4, 4, 3).to(memory_format=torch.channels_last)

        def forward(self, x: Any) -> Any:
            made = self.stem(x)
            if how == "view":
                return made.view(len(x), -1).sum() + self.later(made).sum()
            if how == "leave":
                return made, self.later(made)
            return made.as_strided((2, 3), (1, 7)), self.later(made)

    model, x = Mixed().double(), torch.randn(2, 3, 12, 12).double()
    compiled, lever = rewritten(model)
    torch.testing.assert_close(compiled(x), model(x))
    if how == "leave":
        assert [one.stride() for one in compiled(x)] == [one.stride() for one in model(x)]
    assert lever.receipt().applied == (how != "as_strided")


def network(torch: Any) -> Any:
    nn = torch.nn
    stem = nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
    return nn.Sequential(*stem, nn.Conv2d(8, 2, 3, padding=1))


@pytest.mark.parametrize("more", [(), (ChannelsLast,), (Bf16, ChannelsLast)])
def test_a_compiled_job_trains_the_same_and_says_what_was_done(more: Any, torch: Any) -> None:
    """By torch's real compiler."""
    from tests.levers.jobs import losses

    lever = FoldedPixels()
    model, sizes = network(torch), (2, 3, 16, 16)
    plain = losses(copy.deepcopy(model), sizes)
    others = [one() for one in more]
    close = 2e-2 if Bf16 in more else 1e-4
    assert losses(model, sizes, *others, Compile(), lever) == pytest.approx(plain, rel=close)
    assert lever.receipt().evidence["convolutions"] == 1
    assert model[0].weight.shape == (8, 3, 7, 7)


@pytest.mark.usefixtures("quick")
def test_an_operator_that_only_has_the_name_is_left_alone(torch: Any) -> None:
    conv2d = torch.library.custom_op(
        "hotloop_tests::conv2d",
        lambda x, weight, bias, stride: torch.full_like(x, float(stride)),
        mutates_args=(),
        schema="(Tensor x, Tensor weight, Tensor? bias, int stride) -> Tensor",
    )
    conv2d.register_fake(lambda x, weight, bias, stride: torch.empty_like(x))
    weight, x = torch.randn(4, 3, 7, 7), torch.randn(2, 3, 16, 16)
    compiled, lever = rewritten(lambda x: conv2d(x, weight, None, 2))
    assert torch.equal(compiled(x), torch.full_like(x, 2.0))
    assert not lever.receipt().applied


def test_without_a_graph_it_says_so() -> None:
    assert "no graph was captured" in FoldedPixels().receipt().reason


class TestExpected:
    def of(self, device: str = "NVIDIA H200", **model: Any) -> Any:
        from tests.levers.jobs import seen

        known = seen()
        measured = known.measurement
        models = [replace(one, **model) for one in measured.inventory.models]
        inventory = replace(measured.inventory, models=models)
        software = replace(measured.software, device=device)
        measured = replace(measured, inventory=inventory, software=software)
        return FoldedPixels.expected(replace(known, measurement=measured))

    def test_it_is_for_a_job_that_takes_pictures_in_strides(self) -> None:
        assert self.of(foldable=1).share > 0

    def test_it_is_for_no_other(self) -> None:
        assert "over few channels in strides" in self.of(foldable=0).reason
        assert "tensor cores" in self.of("cpu", foldable=1).reason
        assert "compiles its model itself" in self.of(foldable=1, compiled=True).reason
