from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from hotloop.levers import eight_bits, fp8, graphs
from hotloop.levers.compile import Compile
from hotloop.levers.eight_bits import Converted, in_eight_bits
from hotloop.levers.fp8 import Fp8
from hotloop.measurement import Software
from tests import builders
from tests.levers.jobs import seen, under

CASES = 6
CLOSE = 0.1
"""Of the root mean square: an element is off by up to a sixteenth, a product averages over many."""


@pytest.fixture(autouse=True)
def torch(fresh_torch: Any) -> Iterator[Any]:
    """Without oneDNN: see the tests of bf16."""
    pytest.importorskip("torchao")
    with fresh_torch.backends.mkldnn.flags(enabled=False):
        yield fresh_torch


@pytest.fixture
def without_gpu(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers, computed without the hardware."""
    monkeypatch.setattr(fp8, "has_eight_bits", lambda torch: True)
    emulated = lambda torch, captured, recipe: in_eight_bits(torch, captured, recipe, True)  # noqa: E731
    monkeypatch.setattr(fp8, "in_eight_bits", emulated)
    eager = torch._dynamo.lookup_backend("aot_eager")
    monkeypatch.setattr(graphs, "inductor", lambda torch, mode: eager)


def converted(torch: Any, function: Any, recipe: str = "rowwise") -> tuple[Any, list[Converted]]:
    found: list[Converted] = []
    after = torch._dynamo.lookup_backend("aot_eager")

    def backend(graph: Any, inputs: Any) -> Any:
        found.append(in_eight_bits(torch, graphs.Captured(graph, inputs, None), recipe, True))
        return after(graph, inputs)

    return torch.compile(function, backend=backend, dynamic=False), found


def computed(model: Any, function: Any, x: Any) -> list[Any]:
    """The result, and every gradient."""
    given = x.detach().clone().requires_grad_()
    model.zero_grad()
    result = function(given)
    result.float().square().mean().backward()
    return [result.detach(), given.grad, *(weight.grad.clone() for weight in model.parameters())]


def apart(one: Any, other: Any) -> float:
    difference = (one.double() - other.double()).square().mean().sqrt()
    return float(difference / one.double().square().mean().sqrt())


@pytest.mark.parametrize("recipe", eight_bits.RECIPES)
@pytest.mark.parametrize("case", range(CASES))
def test_products_of_any_size(case: int, recipe: str, torch: Any) -> None:
    draw = random.Random(f"{case} {recipe}")
    inner, outer = (draw.choice([512, 528, 1024]) for _ in range(2))
    rows = draw.choice([(16,), (48,), (2, 32), (4, 2, 4)])
    torch.manual_seed(case)
    model = torch.nn.Linear(inner, outer, bias=draw.random() < 0.5)
    x = torch.randn(*rows, inner) * 10 ** draw.randint(-3, 3)
    function, found = converted(torch, lambda x: model(x), recipe)
    expected, got = computed(model, model, x), computed(model, function, x)
    for one, other in zip(expected, got, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert 0 < apart(one, other) < CLOSE or one.dim() == 1
    assert [one.products for one in found] == [1]


@pytest.mark.parametrize(
    ("inner", "outer", "rows"), [(256, 1024, 16), (1024, 256, 16), (520, 1024, 16), (512, 512, 15)]
)
def test_sizes_that_do_not_pay_or_fit_are_left_alone(
    inner: int, outer: int, rows: int, torch: Any
) -> None:
    model = torch.nn.Linear(inner, outer)
    x = torch.randn(rows, inner)
    function, found = converted(torch, lambda x: model(x))
    assert torch.equal(function(x), model(x))
    assert found == [Converted(products=0, small=1)]


def test_only_weights_are_multiplied_in_it(torch: Any) -> None:
    """Attention multiplies what was just computed."""
    x, y = torch.randn(512, 512), torch.randn(512, 512)
    function, found = converted(torch, lambda x, y: x @ y)
    assert torch.equal(function(x, y), x @ y)
    assert found == [Converted()]


def test_weights_multiplied_by_hand(torch: Any) -> None:
    class Plain(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.randn(512, 1024))
            self.bias = torch.nn.Parameter(torch.randn(1024))

        def forward(self, x: Any) -> Any:
            return torch.addmm(self.bias, x, self.weight) + x @ self.weight

    model, x = Plain(), torch.randn(16, 512)
    function, found = converted(torch, lambda x: model(x))
    assert 0 < apart(model(x).detach(), function(x).detach()) < CLOSE
    assert [one.products for one in found] == [2]


def test_under_autocast_the_result_has_its_format(torch: Any) -> None:
    model, x = torch.nn.Linear(512, 512), torch.randn(16, 512)
    function, found = converted(torch, lambda x: model(x))
    with torch.autocast("cpu", torch.bfloat16):
        assert function(x).dtype is model(x).dtype is torch.bfloat16
    assert found[-1].products == 1


def net(torch: Any, width: int = 512) -> Any:
    return torch.nn.Sequential(
        torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, 10)
    )


def trained(torch: Any, model: Any, *levers: Any, device: str = "cpu") -> list[float]:
    torch.manual_seed(1)
    x = torch.randn(64, model[0].in_features, device=device)
    y = torch.randint(10, (64,), device=device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    with under(*levers):
        for _ in range(8):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


@pytest.mark.usefixtures("without_gpu")
def test_a_model_trains_and_stays_what_it_is(torch: Any) -> None:
    torch.manual_seed(0)
    model, plain = net(torch), net(torch)
    plain.load_state_dict(model.state_dict())
    lever = Fp8()
    ours, theirs = trained(torch, model, Compile(), lever), trained(torch, plain)
    assert ours == pytest.approx(theirs, rel=0.1) and ours != theirs
    assert type(model[0]) is torch.nn.Linear and model[0].weight.dtype is torch.float32
    receipt = lever.receipt()
    assert receipt.applied, receipt.reason
    assert receipt.evidence == {"products": 1, "left_alone": 1, "recipe": "rowwise"}


@pytest.mark.usefixtures("without_gpu")
def test_a_model_without_large_weights(torch: Any) -> None:
    lever = Fp8()
    trained(torch, net(torch, 64), Compile(), lever)
    assert not lever.receipt().applied
    assert "512 × 512" in lever.receipt().reason


def test_a_device_without_it(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    eager = torch._dynamo.lookup_backend("eager")
    monkeypatch.setattr(graphs, "inductor", lambda torch, mode: eager)
    monkeypatch.setattr(fp8, "has_eight_bits", lambda torch: False)
    lever = Fp8()
    trained(torch, net(torch), Compile(), lever)
    assert lever.receipt().reason == fp8.NO_HARDWARE


def test_without_torchao(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchao.float8", None)
    lever = Fp8()
    trained(torch, net(torch, 16), lever)
    assert "pip install" in lever.receipt().reason


def test_nothing_was_compiled(torch: Any) -> None:
    lever = Fp8()
    trained(torch, net(torch, 16), lever)
    assert lever.receipt().reason == "no graph was captured and run"


def test_a_recipe_that_does_not_exist() -> None:
    assert Fp8().problem() == ""
    assert "'tensorwise'" in Fp8("tensorwise").problem()


def test_what_it_could_win(torch: Any) -> None:
    able = Software(device=builders.GPU, float8=True, torchao=True)

    def expected(software: Software, **more: Any) -> Any:
        measured = replace(builders.measurement(), software=software)
        return Fp8.expected(seen(measurement=measured, **more))

    assert "tensor cores" in Fp8.expected(seen()).reason
    assert expected(replace(able, float8=False)).reason == fp8.NO_HARDWARE
    assert expected(replace(able, torchao=False)).reason == fp8.NOT_INSTALLED
    own = builders.model(compiled=True)
    assert "itself" in expected(able, models=[own]).reason
    assert expected(able).is_worth_trying
    assert expected(able, models=[builders.model(large_matrices=1)]).is_worth_trying
    small = [builders.model(large_matrices=0), builders.model(large_matrices=0)]
    assert expected(able, models=small).reason.startswith(
        "none of the model's weights is a matrix of 512"
    )
    assert expected(able, models=[*small, builders.model()]).is_worth_trying  # not known


def test_large_matrices_are_counted(torch: Any) -> None:
    from hotloop.runtime.probes.inventory import _model

    layers = [torch.nn.Linear(512, 1024), torch.nn.Linear(1024, 520), torch.nn.Conv2d(512, 512, 1)]
    assert _model(torch, torch.nn.Sequential(*layers)).large_matrices == 1


@pytest.mark.gpu
@pytest.mark.parametrize("recipe", eight_bits.RECIPES)
def test_on_a_gpu_it_trains_alike(recipe: str, torch: Any) -> None:
    if not fp8.has_eight_bits(torch):
        pytest.skip("no GPU with 8 bits")
    torch.manual_seed(0)
    model, plain = net(torch).cuda(), net(torch).cuda()
    plain.load_state_dict(model.state_dict())
    lever = Fp8(recipe)
    ours = trained(torch, model, Compile(), lever, device="cuda")
    assert ours == pytest.approx(trained(torch, plain, device="cuda"), rel=0.1)
    assert lever.receipt().applied, lever.receipt().reason
