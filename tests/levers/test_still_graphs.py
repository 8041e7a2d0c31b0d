"""Passes of odd models, replayed: what they hand out, and who holds on to it."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import pytest

from hotloop.levers.still_graphs import StillGraphs
from tests.levers.model_graphs import recorded, tallies, trained_alike


@pytest.fixture
def torch(fresh_torch: Any) -> Any:
    return fresh_torch


@pytest.fixture
def nn(torch: Any) -> Any:
    return torch.nn


def one_step(torch: Any, model: Any, optimizer: Any, passes: int = 1, clip: float = 0.0) -> Any:
    optimizer.zero_grad()
    for _ in range(passes):
        model(torch.randn(6, 4)).square().sum().backward()
    if clip:
        torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()


@pytest.mark.parametrize(("passes", "clip"), [(1, 0.1), (2, 0.0)], ids=["clipped", "added up"])
def test_parameters_with_one_gradient(
    jobs: Any, torch: Any, nn: Any, passes: int, clip: float
) -> None:
    """A sum's: in the plain job each has a gradient of its own, and both are written to."""

    class Sum(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Parameter(torch.randn(6, 4))
            self.other = nn.Parameter(torch.randn(6, 4))

        def forward(self, x: Any) -> Any:
            return x + (self.one + self.other)

    def step(model: Any, optimizer: Any) -> None:
        one_step(torch, model, optimizer, passes, clip)
        assert model.one.grad.data_ptr() != model.other.grad.data_ptr()

    assert all(recorded(trained_alike(torch, jobs, Sum, step)))


def test_a_gradient_that_was_kept_by_the_forward_pass(jobs: Any, torch: Any, nn: Any) -> None:
    class Kept(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any, weight: Any) -> Any:
            ctx.save_for_backward(weight)
            return x * weight

        @staticmethod
        def backward(ctx: Any, slope: Any) -> Any:
            return slope, ctx.saved_tensors[0]

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(6, 4))

        def forward(self, x: Any) -> Any:
            return Kept.apply(x, self.weight)

    step = partial(one_step, torch, passes=2, clip=0.1)
    trained_alike(torch, jobs, Model, step)


def test_what_a_function_keeps_beside_what_autograd_saves(jobs: Any, torch: Any, nn: Any) -> None:
    """It is let go by the next loss only, and so lies in two places by turns."""

    class Beside(torch.autograd.Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.kept = x.exp()
            return ctx.kept.sin()

        @staticmethod
        def backward(ctx: Any, slope: Any) -> Any:
            return slope * ctx.kept.cos() * ctx.kept

    class Model(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            return Beside.apply(self.linear(x))

    losses: list[Any] = []

    def step(model: Any, optimizer: Any) -> None:
        optimizer.zero_grad()
        losses[:] = [model(torch.randn(6, 4)).square().mean()]
        losses[0].backward()
        optimizer.step()

    lever = trained_alike(torch, jobs, Model, step, count=16)
    assert all(tally.replayed for tally in tallies(lever))


def test_views_and_what_is_no_tensor_of_its_own(jobs: Any, torch: Any, nn: Any) -> None:
    class Views(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Any) -> Any:
            h = self.linear(x)
            parts = h[:, 1:3], x[2:, 1:], x, h.t(), self.linear.weight[1:], h.argmax(1)
            return h, *parts, x[0].expand(3, 4), h.detach(), None

    def step(model: Any, optimizer: Any) -> Any:
        optimizer.zero_grad()
        made = model(torch.randn(6, 4))
        (made[0].square().sum() + made[1].sum() + made[4].sin().sum() + made[5].sum()).backward()
        optimizer.step()
        return [each.detach().clone() for each in made[:-1]]

    assert all(recorded(trained_alike(torch, jobs, Views, step)))


def test_outputs_that_are_not_always_differentiated(jobs: Any, torch: Any, nn: Any) -> None:
    class Two(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.one, self.other = nn.Linear(4, 4), nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return self.one(x), self.other(x)

    turns: list[int] = []

    def step(model: Any, optimizer: Any) -> None:
        turns.append(len(turns) % 2)
        optimizer.zero_grad()
        model(torch.randn(6, 4))[turns[-1]].square().sum().backward()
        optimizer.step()

    assert all(recorded(trained_alike(torch, jobs, Two, step, count=12)))


def test_random_numbers_are_those_of_the_job(jobs: Any, torch: Any, nn: Any) -> None:
    def make() -> Any:
        return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 2))

    assert all(recorded(trained_alike(torch, jobs, make, partial(one_step, torch))))


def test_sparse_gradients_are_left_alone(jobs: Any, torch: Any, nn: Any) -> None:
    def make() -> Any:
        return nn.Sequential(nn.Embedding(10, 4, sparse=True), nn.Linear(4, 2))

    def step(model: Any, optimizer: Any) -> None:
        optimizer.zero_grad()
        model(torch.randint(0, 10, (6,))).square().sum().backward()
        optimizer.step()

    lever = trained_alike(torch, jobs, make, step)
    assert tallies(lever)[1].reason


def test_numbers_and_objects_that_change(jobs: Any, torch: Any, nn: Any) -> None:
    """torch captures the model anew for each."""

    class Counted(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Any, count: Any) -> Any:
            return self.linear(x) * (count if isinstance(count, int) else len(vars(count)))

    counts: list[int] = []

    def count(model: Any, optimizer: Any, given: Any = None) -> None:
        counts.append(len(counts) % 10)
        optimizer.zero_grad()
        given = counts[-1] + 1 if given is None else given
        model(torch.randn(6, 4), given).square().mean().backward()
        optimizer.step()

    def tell(model: Any, optimizer: Any) -> None:
        count(model, optimizer, type("Told", (), {})())

    for step in (count, tell):
        lever = trained_alike(torch, jobs, Counted, step)
        assert recorded(lever) == []
        assert "tensors of the same sizes" in lever.receipt().reason


def test_weights_that_are_loaded_in_mid_training(jobs: Any, torch: Any, nn: Any) -> None:
    kept: list[Any] = []

    def step(model: Any, optimizer: Any) -> None:
        kept.append(copy.deepcopy(model.state_dict()))
        if len(kept) % 10 == 6:
            model.load_state_dict(kept[-3], assign=len(kept) > 10)
        optimizer.param_groups[0]["params"] = list(model.parameters())
        one_step(torch, model, optimizer)

    lever = trained_alike(torch, jobs, lambda: nn.Linear(4, 2), step)
    assert all(recorded(lever))


def test_what_was_recorded_stays_when_another_recording_fails(torch: Any) -> None:
    """There may be no room for a second, or it may be given what cannot be recorded."""
    from tests.levers.recorder import RecorderOnCpu

    recorder = RecorderOnCpu()
    doubled = StillGraphs(torch, recorder, lambda given: [2 * given[0]], still=[0], handed=1)
    one, other = torch.ones(3), torch.ones(3)
    for _ in range(3):
        doubled([one])
    recorder.fails = "out of memory"
    for _ in range(3):
        doubled([other])
        one += 1
        assert torch.equal(doubled([one])[0], 2 * one)
    assert (doubled.tally.replayed, doubled.tally.others) == (5, 4)
    assert doubled.tally.reason == "it cannot be captured: out of memory"
