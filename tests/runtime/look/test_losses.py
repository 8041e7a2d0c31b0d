from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hotloop.inspection import LossSeen
from hotloop.runtime.look.losses import LossCalls
from hotloop.runtime.watching import Watch


@pytest.fixture
def losses(torch: Any, watch: Watch) -> Iterator[LossCalls]:
    watch.driver.detach()
    found = LossCalls(torch)
    found.attach(watch.seams)
    watch.driver.attach()
    yield found


def test_what_learns_is_counted_from_the_beginning(torch: Any, losses: LossCalls) -> None:
    functional = torch.nn.functional
    logits, y = torch.randn(6, 5, requires_grad=True), torch.arange(6) % 5
    functional.cross_entropy(logits, y)
    assert losses.seen() == []
    losses.begin()
    functional.cross_entropy(logits, y)
    torch.nn.CrossEntropyLoss()(input=logits.bfloat16(), target=y)
    functional.cross_entropy(logits, target=y)
    with torch.no_grad():
        functional.cross_entropy(logits, y)
    functional.mse_loss(logits.detach(), logits.detach())
    assert losses.seen() == [
        LossSeen("cross_entropy", False, 2, 60, 4),
        LossSeen("cross_entropy", False, 1, 30, 2),
    ]


def test_a_model_may_compute_its_loss_itself(torch: Any, jobs: Any, losses: LossCalls) -> None:
    losses.begin()
    model = jobs.Task(jobs.Net())
    jobs.train(model, loss_of=lambda model, x, y: model(x, y))
    # Before the first backward pass no model is known.
    assert {(one.function, one.inside_model, one.calls) for one in losses.seen()} == {
        ("mse_loss", False, 1),
        ("mse_loss", True, jobs.STEPS - 1),
    }
