from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hotloop.runtime.exam import randomness
from hotloop.runtime.exam.rounding import Rounding


@contextmanager
def rounding(torch: Any, bits: int) -> Iterator[None]:
    active = Rounding(torch, bits)
    active.begin([], in_weights=False)
    try:
        yield
    finally:
        active.end()


def away(found: Any, exact: Any) -> Any:
    return ((found - exact).abs() / exact.abs()).detach()


@pytest.mark.parametrize("bits", [3, 7, 10])
def test_results_are_disturbed_in_the_bit_that_is_asked_for(torch: Any, bits: int) -> None:
    weight = torch.rand(10_000, requires_grad=True)
    exact = weight * 1.0 + 1
    with rounding(torch, bits):
        found = torch.add(weight, 1.0)
    size = away(found, exact)
    assert 0.9 * 2.0**-bits < size.max() <= 1.01 * 2.0**-bits
    assert size.mean() == pytest.approx(0.5 * 2.0**-bits, rel=0.1)


def test_so_are_those_that_carry_something_along(torch: Any) -> None:
    class Image(torch.Tensor):  # type: ignore[misc]
        """As those that MONAI hands out: a kind of its own, which torch's functions keep."""

    weight, image = torch.rand(1000, requires_grad=True), torch.rand(1000).as_subclass(Image)
    exact = weight * image
    with rounding(torch, 7):
        found = weight * image
        same = found.reshape(10, 100)
    assert type(found) is Image
    assert 0 < away(found, exact).max() <= 1.01 * 2.0**-7
    assert torch.equal(same.flatten(), found)


def test_in_the_last_bit_some_results_stay_as_they_are(torch: Any) -> None:
    weight = torch.rand(10_000, requires_grad=True)
    exact = weight * 3
    with rounding(torch, 23):
        found = weight * 3
    changed = (found != exact).float().mean()
    assert 0.2 < changed < 0.95
    assert away(found, exact).max() <= 2.0**-22


def test_double_precision_is_disturbed_in_its_own_last_bit(torch: Any) -> None:
    weight = torch.rand(1000, requires_grad=True, dtype=torch.float64)
    exact = weight * 3
    with rounding(torch, 52):
        found = weight * 3
    assert found.dtype is torch.float64
    assert 0 < away(found, exact).max() <= 2.0**-51


def test_the_gradient_is_disturbed_on_its_way_back(torch: Any) -> None:
    weight = torch.rand(1000, requires_grad=True)
    with rounding(torch, 7):
        (weight * 3).sum().backward()
    size = away(weight.grad, torch.full((1000,), 3.0))
    assert 0 < size.mean() < 2.0**-6


def test_two_operations_add_up(torch: Any) -> None:
    weight = torch.rand(10_000, requires_grad=True)
    with rounding(torch, 7):
        once = weight * 1
        twice = (weight * 1) * 1
    assert away(twice, weight).max() > 1.2 * away(once, weight).max()


def test_data_and_what_has_no_gradient_stay_exact(torch: Any) -> None:
    data = torch.rand(100)
    weight = torch.rand(100, requires_grad=True)
    with rounding(torch, 3):
        assert torch.equal(data * 2, data + data)
        with torch.no_grad():
            assert torch.equal(weight * 2, weight + weight)
        assert (data > 0.5).dtype is torch.bool


def test_views_are_still_views(torch: Any) -> None:
    weight = torch.rand(4, 6, requires_grad=True)
    hidden = weight * 1.0
    with rounding(torch, 3):
        for view in (hidden.view(24), hidden.t(), hidden[1:], hidden.flatten(), hidden.detach()):
            assert view.untyped_storage().data_ptr() == hidden.untyped_storage().data_ptr()
        parts = hidden.chunk(2)
    assert torch.equal(torch.cat(parts), hidden)


def test_what_is_changed_in_place_stays_the_same_tensor(torch: Any) -> None:
    weight = torch.rand(4, requires_grad=True)
    hidden = weight * 1.0
    with rounding(torch, 3):
        result = hidden.mul_(2.0)
        assert result is hidden
        assert torch.nn.functional.relu(hidden, inplace=True) is hidden
    assert torch.equal(hidden, weight * 2)


def test_the_scripts_own_random_numbers_stay_as_they_are(torch: Any) -> None:
    weight = torch.rand(4, requires_grad=True)
    before = randomness.drawn(torch)
    with rounding(torch, 7):
        _ = weight * 2
    assert randomness.drawn(torch) == before


def test_the_noise_is_the_same_every_time(torch: Any) -> None:
    weight = torch.rand(4, requires_grad=True)
    results = []
    for _ in range(2):
        with rounding(torch, 7):
            results.append(weight * 2)
    assert torch.equal(*results)


def test_afterwards_nothing_is_disturbed(torch: Any) -> None:
    weight = torch.rand(4, requires_grad=True)
    with rounding(torch, 7):
        pass
    assert torch.equal(weight * 2, weight + weight)


def test_of_a_compiled_model_the_weights_are_disturbed_until_the_step(torch: Any) -> None:
    weight = torch.nn.Parameter(torch.rand(1000))
    counter = torch.nn.Parameter(torch.arange(3), requires_grad=False)
    exact = weight.detach().clone()
    active = Rounding(torch, 7)
    active.begin([weight, counter], in_weights=True)
    assert 0 < away(weight, exact).max() <= 2.0**-7
    assert counter.tolist() == [0, 1, 2]
    active.before_step()
    assert torch.equal(weight, exact)
    weight.data.add_(1.0)
    active.end()
    assert torch.equal(weight, exact + 1.0)


def test_a_step_that_never_comes_leaves_the_weights_exact_too(torch: Any) -> None:
    weight = torch.nn.Parameter(torch.rand(1000))
    exact = weight.detach().clone()
    active = Rounding(torch, 7)
    active.begin([weight], in_weights=True)
    active.end()
    assert torch.equal(weight, exact)


def narrowed(tensor: Any, kind: Any) -> Any:
    return tensor.to(kind).to(tensor.dtype)


@pytest.mark.parametrize(("bits", "kind"), [(7, "bfloat16"), (10, "float16")])
def test_weights_and_data_of_a_product_are_rounded(torch: Any, bits: int, kind: str) -> None:
    """The same way for all rows: no mean over them takes it away."""
    kind = getattr(torch, kind)
    weight, bias = torch.rand(1, 50, requires_grad=True), torch.rand(1, requires_grad=True)
    data = torch.rand(1, 50).expand(20_000, 50)
    expected = torch.nn.functional.linear(*(narrowed(x, kind) for x in (data, weight, bias)))
    with rounding(torch, bits):
        found = torch.nn.functional.linear(data, weight, bias)
    assert found.mean().item() == pytest.approx(expected.mean().item(), rel=2.0**-bits / 50)
    exact = torch.nn.functional.linear(data, weight, bias)
    assert abs(exact.mean() - expected.mean()) > 3 * abs(found.mean() - expected.mean())


@pytest.mark.parametrize("kind", ["conv", "recurrent", "attention", "view"])
def test_gradients_move_as_far_as_in_the_narrower_format(torch: Any, kind: str) -> None:
    nn = torch.nn
    torch.manual_seed(0)
    layer, data = {
        "conv": lambda: (nn.Conv2d(3, 8, 3), torch.rand(8, 3, 32, 32)),
        "recurrent": lambda: (nn.GRU(8, 8, batch_first=True), torch.rand(8, 12, 8)),
        "attention": lambda: (nn.MultiheadAttention(8, 2), torch.rand(8, 12, 8)),
        "view": lambda: (nn.Linear(8, 8), torch.rand(64, 8)),
    }[kind]()

    def outputs(x: Any) -> Any:
        if kind == "attention":
            return layer(x, x, x)[0]
        if kind == "view":
            return x @ layer.weight.t()[:, 2:]
        return layer(x)[0] if kind == "recurrent" else layer(x)

    with torch.no_grad():
        goal = outputs(data)

    def gradient() -> Any:
        """Of a job that has nearly learned what it is to learn: errors are what is left."""
        layer.zero_grad()
        (outputs(data) - goal * 1.01).square().mean().backward()
        return torch.cat([p.grad.flatten() for p in layer.parameters() if p.grad is not None])

    exact = gradient()
    with torch.autocast("cpu", torch.bfloat16):
        narrow = gradient()
    with rounding(torch, 7):
        found = gradient()
    assert (narrow - exact).norm() < 4 * (found - exact).norm()


def test_what_is_rounded_already_is_left_alone(torch: Any) -> None:
    weight = narrowed(torch.rand(1000, 4), torch.bfloat16).requires_grad_()
    active = Rounding(torch, 7)
    assert torch.equal(active._rounded(weight), weight)
    special = torch.tensor([0.0, float("inf"), -float("inf"), 2.0**127, 2.0**-149])
    assert torch.equal(active._rounded(special), special)
    largest = torch.tensor([torch.finfo(torch.float32).max])
    assert torch.equal(active._rounded(largest), largest)  # and not infinity


def test_in_the_jobs_own_format_no_operand_is_rounded(torch: Any) -> None:
    weight = torch.rand(4, 4, requires_grad=True)
    with rounding(torch, 23):
        found = torch.matmul(weight, torch.eye(4))
    assert away(found, weight).max() <= 2.0**-22


def test_products_that_a_model_keeps_something_of_are_disturbed_inside_it_alone(torch: Any) -> None:
    weight, data = torch.rand(50, 50), torch.rand(50)
    active = Rounding(torch, 7)
    active.begin([], in_weights=False)
    try:
        with torch.no_grad():
            assert torch.equal(weight @ data, torch.mv(weight, data))
            active.inside_learning = True
            found, doubled, place = weight @ data, data * 2, torch.empty(50)
            assert torch.mv(weight, data, out=place) is place
            active.inside_learning = False
            exact = weight @ data
    finally:
        active.end()
    assert 0 < away(found, exact).max() < 2.0**-6
    assert torch.equal(doubled, data + data) and torch.equal(place, exact)
