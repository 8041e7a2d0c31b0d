"""What comes of gradients that are scaled from outside: what a scaler by hand makes of them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from hotloop.levers.fp16 import Fp16
from tests.levers.scaled_jobs import SMALL, STEPS, Case, Trained, under


@pytest.fixture
def torch(without_onednn: Any) -> Any:
    return without_onednn


@pytest.fixture
def jobs(torch: Any) -> Any:
    from tests.runtime import jobs

    return jobs


CASES = [
    Case(kind, fused, clip, passes, size, optimizers)
    for (kind, fused), clip, passes, size, optimizers in itertools.product(
        [("SGD", False), ("AdamW", False), ("Adam", True)],
        ["", "norm", "value"],
        [1, 3],
        [1.0, 5.0],
        [1, 2],
    )
    if not (clip == "norm" and size > 1 and optimizers > 1)  # torch's own scaler fails: see below
]


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_weights_are_those_of_a_loop_with_a_scaler_by_hand(
    case: Case, torch: Any, jobs: Any
) -> None:
    """To the last bit; and so is what the script logs between backward pass and step."""
    by_hand = Trained(torch, jobs, case, torch.amp.GradScaler("cpu"))
    lever = Fp16()
    with under(torch, lever):
        ours = Trained(torch, jobs, case)
    receipt = lever.receipt()
    assert receipt.applied, receipt.reason
    assert all(map(torch.equal, ours.weights, by_hand.weights))
    assert str(ours.logged) == str(by_hand.logged)  # a skipped one holds infinities
    assert receipt.evidence["scale"] == by_hand._scaler.get_scale()
    assert bool(receipt.evidence["steps_skipped"]) == (by_hand._scaler.get_scale() < 2.0**16)
    assert receipt.evidence["steps"] == STEPS * case.optimizers
    assert receipt.evidence["passes_scaled"] == STEPS * case.passes


def test_a_case_that_overflows_does(torch: Any, jobs: Any) -> None:
    """The test above would be content without."""
    lever = Fp16()
    with under(torch, lever):
        Trained(torch, jobs, Case(size=5.0))
    assert 0 < lever.receipt().evidence["steps_skipped"] < STEPS  # type: ignore[operator]


def test_small_gradients_survive_that_float16_has_no_numbers_for(torch: Any, jobs: Any) -> None:
    def gradients(lever: Fp16 | None) -> list[float]:
        torch.manual_seed(0)
        model = jobs.Net(16)
        loss = lambda model, x, y: 1e-8 * jobs.plain_loss(model, x, y)  # noqa: E731
        if lever is None:
            jobs.train(model, steps=2, loss_of=loss)
        else:
            with under(torch, lever):
                jobs.train(model, steps=2, loss_of=loss)
        return [float(p.grad.norm()) for p in model.parameters()]

    assert gradients(Fp16()) == pytest.approx(gradients(None), rel=0.02)


def test_fused_sgd_that_overflows_at_once_has_no_momentum_from_nowhere(
    torch: Any, jobs: Any
) -> None:
    """torch leaves the buffer of a skipped first step unwritten, with a scaler by hand as well."""
    plain, fused = (Case("SGD", fused=each, size=5.0) for each in (False, True))
    with under(torch, Fp16()):
        expected = Trained(torch, jobs, plain).weights
    with under(torch, Fp16()):
        found = Trained(torch, jobs, fused).weights
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("fused", [False, True])
def test_optimizers_that_are_clipped_together_are_skipped_together(
    fused: bool, torch: Any, jobs: Any
) -> None:
    """With a scaler by hand one of them steps by what is not a number, as the norm of all is."""
    case = Case("Adam", fused, "norm", passes=3, size=5.0, optimizers=2)
    assert not Trained(torch, jobs, case, torch.amp.GradScaler("cpu")).weights[0].isfinite().all()
    lever = Fp16()
    with under(torch, lever):
        ours = Trained(torch, jobs, case)
    assert all(weight.isfinite().all() for weight in ours.weights)
    assert 0 < lever.receipt().evidence["steps_skipped"] < 2 * STEPS  # type: ignore[operator]


def test_whatever_the_script_wants_a_gradient_of_is_unscaled(torch: Any, jobs: Any) -> None:
    """An input, a result in between, a parameter that nobody steps."""
    extra = torch.nn.Parameter(torch.ones(1))

    def train(steps: int) -> list[Any]:
        torch.manual_seed(0)
        model, found = jobs.Net(16), []
        optimizer = torch.optim.SGD(model.head.parameters(), lr=0.01)
        for _ in range(steps):
            x, y = jobs.batch()
            x.requires_grad_()
            extra.grad = None
            model.zero_grad()
            hidden = model(x)
            hidden.retain_grad()
            (SMALL * ((hidden * extra).float() - y).square().mean()).backward()
            body = model.body[0].weight.grad
            found.append([float(t.norm()) for t in (x.grad, hidden.grad, extra.grad, body)])
            optimizer.step()
        return found

    with under(torch, Fp16()):
        low = train(10)
    for one, other in zip(low, train(10), strict=True):
        assert one == pytest.approx(other, rel=0.05)


def test_one_graph_differentiated_twice(torch: Any, jobs: Any) -> None:
    def train() -> list[float]:
        torch.manual_seed(0)
        model = jobs.Net(16)
        optimizer = jobs.sgd(model)
        for _ in range(4):
            x, y = jobs.batch()
            optimizer.zero_grad(set_to_none=False)
            output = model(x)
            (SMALL * (output - y).square().mean()).backward(retain_graph=True)
            (SMALL * (output - y).abs().mean()).backward()
            optimizer.step()
        return [float(p.grad.norm()) for p in model.parameters()]

    lever = Fp16()
    with under(torch, lever):
        low = train()
    assert low == pytest.approx(train(), rel=0.02)
    assert lever.receipt().evidence["passes_scaled"] == 8


def test_a_loss_that_is_no_number(torch: Any, jobs: Any) -> None:
    def train() -> list[float]:
        torch.manual_seed(0)
        model = jobs.Net(16)
        optimizer = jobs.sgd(model)
        for _ in range(4):
            x, y = jobs.batch()
            optimizer.zero_grad()
            errors = (model(x) - y).square()
            errors.backward(torch.full_like(errors, SMALL / 6))
            optimizer.step()
        return [float(p.grad.norm()) for p in model.parameters()]

    lever = Fp16()
    with under(torch, lever):
        low = train()
    assert lever.receipt().applied
    assert low == pytest.approx(train(), rel=0.02)


def test_a_loss_that_is_in_float16_itself(torch: Any, jobs: Any) -> None:
    """Scaled by 65536 it has no number for it: its first step is skipped."""
    kinds = []

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        loss = model(x).mean()
        kinds.append(loss.dtype)
        return loss

    lever = Fp16()
    with under(torch, lever):
        jobs.train(jobs.Net(16), loss_of=loss_of)
    assert set(kinds) == {torch.float16}
    assert lever.receipt().evidence["steps_skipped"] == 1


def test_sparse_gradients(torch: Any) -> None:
    class Words(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(8, 4, sparse=True)
            self.head = torch.nn.Linear(4, 1)

        def forward(self, x: Any) -> Any:
            return self.head(self.table(x))

    def train() -> Any:
        torch.manual_seed(0)
        model = Words()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            for _ in range(2):
                (SMALL * model(torch.randint(8, (6,))).float().square().mean()).backward()
            optimizer.step()
        return model.table.weight.grad.to_dense()

    with under(torch, Fp16()):
        low = train()
    assert torch.allclose(low, train(), rtol=0.05, atol=1e-3)
