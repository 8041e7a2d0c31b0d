from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from hotloop.runtime.look.unused_gradients import UnusedGradientProbe
from hotloop.runtime.watching import Watch


@pytest.fixture
def probe(torch: Any, unharmed: None) -> Iterator[UnusedGradientProbe]:
    watch = Watch(torch)
    probe = UnusedGradientProbe()
    probe.attach(watch.seams)
    watch.driver.attach()
    yield probe
    watch.driver.detach()


def train(
    torch: Any,
    probe: UnusedGradientProbe,
    model: Any,
    trained: Any,
    by_hand: Callable[[], None] = lambda: None,
) -> None:
    optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
    for number in range(4):
        if number == 1:
            probe.begin([model])
        model.zero_grad()
        model(torch.ones(8, 64)).sum().backward()
        optimizer.step()
        by_hand()
    probe.end()


def network(torch: Any) -> Any:
    layers = [torch.nn.Linear(64, 64) for _ in range(6)]
    return torch.nn.Sequential(*layers, torch.nn.Linear(64, 2))


def test_only_the_head_is_trained(torch: Any, probe: UnusedGradientProbe) -> None:
    model = network(torch)
    train(torch, probe, model, model[-1])
    assert probe.found is not None
    assert (probe.found.tensors, probe.found.elements) == (12, 6 * (64 * 64 + 64))
    assert 0.3 < probe.found.of_backward < 1


def test_what_lies_behind_the_trained_part_is_gone_through_anyway(
    torch: Any, probe: UnusedGradientProbe
) -> None:
    model = network(torch)
    train(torch, probe, model, model[0])
    assert probe.found is not None and probe.found.tensors == 12
    assert probe.found.of_backward < 0.5


def test_frozen_as_it_should_be(torch: Any, probe: UnusedGradientProbe) -> None:
    model = network(torch)
    model[:-1].requires_grad_(False)
    train(torch, probe, model, model[-1])
    assert probe.found is None


def test_an_optimizer_that_has_not_stepped_yet_holds_them(
    torch: Any, probe: UnusedGradientProbe
) -> None:
    model = network(torch)
    later = torch.optim.SGD(model[:-1].parameters(), lr=0.1)
    train(torch, probe, model, model[-1])
    assert probe.found is None and later.param_groups


def test_updated_by_hand(torch: Any, probe: UnusedGradientProbe) -> None:
    model = network(torch)

    def update() -> None:
        for parameter in model[:-1].parameters():
            parameter.data -= 0.1 * parameter.grad

    train(torch, probe, model, model[-1], update)
    assert probe.found is None
