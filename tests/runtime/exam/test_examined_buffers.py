"""What models keep and nobody trains, in examinations as a child makes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from hotloop.evidence import Difference, Evidence, KeptSeen
from tests.runtime.exam.test_examination import Examined, examined

__all__ = ["examined"]


def with_norms(torch: Any, jobs: Any, momentum: float = 0.1, skip: bool = False) -> Any:
    """Two models with an optimizer each, which step in turns, and a weight that nobody trains."""

    def model() -> Any:
        follows = torch.nn.Linear(4, 4).requires_grad_(False)
        norm = torch.nn.BatchNorm1d(4, momentum=momentum)
        return torch.nn.Sequential(torch.nn.Linear(4, 4), norm, follows, jobs.Net())

    def job() -> None:
        models = [model(), model()]
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8, growth_interval=1000)
        optimizers = [
            torch.optim.SGD([w for w in one.parameters() if w.requires_grad], lr=0.01)
            for one in models
        ]
        for number in range(1000):
            for one, optimizer in zip(models, optimizers, strict=True):
                optimizer.zero_grad()
                loss = jobs.plain_loss(one, *jobs.batch())
                loss = loss * torch.inf if skip and number == 3 else loss
                scaler.scale(loss).backward()
                scaler.step(optimizer)
            scaler.update()
            with torch.no_grad():
                for one in models:
                    one[2].weight.lerp_(one[0].weight, 0.1)

    return job


def changes(found: Evidence) -> dict[str, Difference]:
    return {one.tensor: one for one in found.differences if one.quantity == "change"}


KEPT = 2 * (3 + 2)
"""Of either model the norm's buffers, and weight and bias that nobody trains."""


def test_what_a_round_of_optimizers_leaves_is_compared_once(
    torch: Any, jobs: Any, examined: Examined
) -> None:
    job = with_norms(torch, jobs)
    reference = examined(job, is_reference=True, forced=(6,))
    again = examined(job, forced=(6,))
    assert (reference.problem, again.problem) == ("", "")
    # Of all of them only a bias stays as it is: what follows moves after the step before.
    assert reference.kept == again.kept == [KeptSeen(6, KEPT, KEPT - 2, 0)]
    found = changes(again)
    assert len(found) == KEPT - 2 and all(one.difference == 0.0 for one in found.values())
    counted = {one.tensor: one.difference for one in again.differences if one.quantity == "count"}
    assert counted == {f"model {n}: 1.num_batches_tracked": 0.0 for n in range(2)}


@pytest.mark.parametrize("bits", [23, 7])
def test_noise_reaches_what_is_kept(bits: int, torch: Any, jobs: Any, examined: Examined) -> None:
    job: Callable[[], None] = with_norms(torch, jobs)
    examined(job, is_reference=True, forced=(6,))
    found = changes(examined(job, forced=(6,), noise_bits=bits))
    mean = found["model 0: 1.running_mean"]
    assert mean.difference is not None
    assert 0 < mean.difference < 2.0 ** (4 - bits) * mean.reference
    assert found["model 0: 2.weight"].difference == 0.0  # exact weights again, after the step


def test_a_tenth_of_a_momentum_shows(torch: Any, jobs: Any, examined: Examined) -> None:
    examined(with_norms(torch, jobs), is_reference=True, forced=(6,))
    found = changes(examined(with_norms(torch, jobs, momentum=0.11), forced=(6,)))
    mean = found["model 1: 1.running_mean"]
    assert mean.difference == pytest.approx(0.1 * mean.reference, rel=1e-2)
    assert found["model 1: 1.num_batches_tracked"].difference == 0.0


@pytest.mark.parametrize("there", [True, False])
def test_after_a_step_that_a_scaler_skipped_nothing_is_compared(
    there: bool, torch: Any, jobs: Any, examined: Examined
) -> None:
    """What the other model is given may come of it."""
    reference = examined(with_norms(torch, jobs, skip=there), is_reference=True, forced=(6,))
    again = examined(with_norms(torch, jobs, skip=not there), forced=(6,))
    assert (reference.problem, again.problem) == ("", "")
    assert (again.kept, changes(again)) == ([], {})
