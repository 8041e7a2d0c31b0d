"""Gradients gathered over parts are those of the whole batch: random cases, the same every time."""

from __future__ import annotations

import copy
import random
from typing import Any

import pytest

from hotloop.runtime.owned import splitting
from hotloop.runtime.owned.gathering import Gathering

CASES = 40


def gradients(torch: Any, model: Any, loss_of: Any, batch: Any, size: int) -> list[Any]:
    model = copy.deepcopy(model)
    rows = len(batch[0])
    gathering = Gathering(torch, rows)
    for part, count in splitting.parts(torch, batch, rows, size):
        returned = loss_of(model, part)
        loss, weight = returned if isinstance(returned, tuple) else (returned, None)
        gathering.differentiate(loss, weight, count)
    gathering.finish(list(model.parameters()))
    return [parameter.grad for parameter in model.parameters()]


def mean(model: Any, batch: Any) -> Any:
    x, y, _ = batch
    return (model(x) - y).square().mean()


def weighted(model: Any, batch: Any) -> Any:
    """Every sample counts by a weight of its own, as if by its tokens. It may be nothing."""
    x, y, weight = batch
    return ((model(x) - y).square() * weight).sum(), weight.sum()


def weighted_by_number(model: Any, batch: Any) -> Any:
    summed, weight = weighted(model, batch)
    return summed, float(weight)


def plain(loss_of: Any) -> Any:
    """The same without anything of ours."""

    def loss(model: Any, batch: Any) -> Any:
        returned = loss_of(model, batch)
        return returned[0] / returned[1] if isinstance(returned, tuple) else returned

    return loss


@pytest.mark.parametrize("loss_of", [mean, weighted, weighted_by_number])
@pytest.mark.parametrize("case", range(CASES))
def test_gradients_equal_those_of_the_whole_batch(case: int, loss_of: Any, torch: Any) -> None:
    draw = random.Random(case)
    rows, size = draw.randint(1, 70), draw.randint(1, 80)
    torch.manual_seed(case)
    model = torch.nn.Sequential(torch.nn.Linear(5, 7), torch.nn.Tanh(), torch.nn.Linear(7, 1))
    weight = torch.randint(0, 4, (rows, 1)).float() * draw.choice([1, 1, 100])
    weight[draw.randrange(rows)] = 1.0
    batch = torch.randn(rows, 5), torch.randn(rows, 1), weight
    model.zero_grad()
    plain(loss_of)(model, batch).backward()
    expected = [parameter.grad for parameter in model.parameters()]
    model.zero_grad()
    for found, wanted in zip(gradients(torch, model, loss_of, batch, size), expected, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)


def test_a_mean_of_means_would_be_noticed(torch: Any) -> None:
    """The test above can fail: parts of different weight must not count alike."""
    torch.manual_seed(0)
    model, size = torch.nn.Linear(5, 1), 4
    batch = torch.randn(9, 5), torch.randn(9, 1), torch.rand(9, 1) * 10
    means = plain(weighted)
    right = gradients(torch, model, weighted, batch, size)
    wrong = gradients(torch, model, means, batch, size)
    assert not torch.allclose(right[0], wrong[0], rtol=1e-2)


def test_a_part_without_weight_does_no_harm(torch: Any) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(5, 1)
    weight = torch.tensor([[0.0], [0.0], [1.0], [2.0]])
    batch = torch.randn(4, 5), torch.randn(4, 1), weight
    split = gradients(torch, model, weighted, batch, 2)
    whole = gradients(torch, model, weighted, batch, 4)
    torch.testing.assert_close(split[0], whole[0])


def test_the_loss_that_is_differentiated_is_the_parts_own_mean(torch: Any) -> None:
    """Whoever watches losses sees numbers of one size, however a batch is taken apart."""
    model = torch.nn.Linear(5, 1)
    batch = torch.randn(6, 5), torch.randn(6, 1), torch.full((6, 1), 3.0)
    gathering = Gathering(torch, 6)
    (first, count), _ = splitting.parts(torch, batch, 6, 3)
    summed, weight = weighted(model, first)
    seen = gathering.differentiate(summed, weight, count)
    torch.testing.assert_close(seen, summed / weight)


def test_losses_of_one_element_in_a_vector(torch: Any) -> None:
    model = torch.nn.Linear(5, 1)
    batch = torch.randn(4, 5), torch.randn(4, 1), torch.ones(4, 1)

    def loss(model: Any, batch: Any) -> Any:
        return mean(model, batch)[None]

    split, whole = (gradients(torch, model, loss, batch, size) for size in (1, 4))
    torch.testing.assert_close(split[0], whole[0])
