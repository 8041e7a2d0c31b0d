from __future__ import annotations

from typing import Any

from hotloop.measurement import Memory
from hotloop.runtime.probes.holdings import with_holdings


def held(torch: Any, models: list[Any], optimizers: list[Any]) -> tuple[int | None, ...]:
    found = with_holdings(torch, Memory(host_peak=7), models, optimizers)
    assert found.host_peak == 7
    return found.weights, found.gradients, found.optimizer


def trained(torch: Any, model: Any, optimizer: Any) -> Any:
    model(torch.ones(2, 8)).sum().backward()
    optimizer.step()
    return optimizer


def test_weights_gradients_and_state(torch: Any) -> None:
    model = torch.nn.Linear(8, 4)
    optimizer = trained(torch, model, torch.optim.AdamW(model.parameters()))
    size = (8 * 4 + 4) * 4
    weights, gradients, state = held(torch, [model], [optimizer])
    assert (weights, gradients) == (size, size)
    assert state is not None and 2 * size <= state <= 2 * size + 64  # and two counters of steps


def test_state_depends_on_settings_and_is_read_not_guessed(torch: Any) -> None:
    model = torch.nn.Linear(8, 4)
    plain = trained(torch, model, torch.optim.SGD(model.parameters(), lr=0.1))
    assert held(torch, [model], [plain])[2] == 0
    heavy = trained(torch, model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
    assert held(torch, [model], [heavy])[2] == held(torch, [model], [])[0]


def test_mixed_formats_and_what_is_shared(torch: Any) -> None:
    first, second = torch.nn.Linear(8, 8, bias=False), torch.nn.Linear(8, 8, bias=False)
    second.weight = first.weight
    first.register_buffer("mask", torch.ones(4, dtype=torch.bfloat16))
    assert held(torch, [first, second], [])[0] == 8 * 8 * 4 + 4 * 2


def test_gradients_that_were_let_go(torch: Any) -> None:
    model = torch.nn.Linear(8, 4)
    optimizer = trained(torch, model, torch.optim.SGD(model.parameters(), lr=0.1))
    optimizer.zero_grad()
    assert held(torch, [model], [optimizer])[1] == 0


def test_without_a_model_nothing_is_claimed(torch: Any) -> None:
    assert held(torch, [], []) == (None, None, None)


def test_what_lies_elsewhere_does_not_fill_that_memory(torch: Any) -> None:
    model = torch.nn.Linear(8, 4)
    model.register_buffer("far", torch.ones(1000, device="meta"))
    assert held(torch, [model], [])[0] == (8 * 4 + 4) * 4
