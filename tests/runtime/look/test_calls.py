from __future__ import annotations

import io
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from hotloop.runtime.look.calls import CallProbe
from hotloop.runtime.patches import Patches
from hotloop.runtime.watching import Watch


@pytest.fixture
def probe(torch: Any, unharmed: None) -> Iterator[CallProbe]:
    watch, patches = Watch(torch), Patches()
    probe = CallProbe(torch)
    probe.attach(watch.seams, patches)
    watch.driver.attach()
    yield probe
    watch.driver.detach()
    patches.restore()


def test_dear_calls_by_line(torch: Any, probe: CallProbe) -> None:
    torch.save({"x": torch.ones(3)}, io.BytesIO())
    torch.cuda.empty_cache()
    torch.set_num_threads(1)
    assert [(call.what, call.stack[-1].source) for call in probe.calls] == [
        ("torch.save", 'torch.save({"x": torch.ones(3)}, io.BytesIO())'),
        ("empty_cache", "torch.cuda.empty_cache()"),
        ("torch.set_num_threads", "torch.set_num_threads(1)"),
    ]
    assert probe.calls[0].seconds > 0


def found_by_discovery(torch: Any, model: Any) -> None:
    """Root modules are looked for from the first backward pass on."""
    model(torch.ones(2, 3)).sum().backward()


def test_evaluation_with_gradients(torch: Any, probe: CallProbe) -> None:
    model = torch.nn.Linear(3, 1)
    found_by_discovery(torch, model)
    model(torch.ones(2, 3)).sum().backward()  # training
    model.eval()
    model(torch.ones(2, 3))  # the one
    with torch.no_grad():
        model(torch.ones(2, 3))
    assert [one.stack[-1].source for one in probe.passes] == ["model(torch.ones(2, 3))  # the one"]
    model.train()
    model(torch.ones(2, 3))  # evaluated all the same
    assert [one.training for one in probe.passes] == [False, True]


def test_a_model_that_differentiates_itself_needs_gradients(torch: Any, probe: CallProbe) -> None:
    """Forces from energies, in evaluation as in training."""

    class Forces(torch.nn.Linear):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            x = x.requires_grad_()
            energy = super().forward(x).square().sum()
            return energy, torch.autograd.grad(energy, x, create_graph=True)[0]

    model = Forces(3, 1)
    energy, forces = model(torch.ones(2, 3))
    (energy + forces.sum()).backward()
    model.eval()
    model(torch.ones(2, 3))
    assert probe.passes == []


@pytest.mark.parametrize("as_list", [False, True])
def test_a_pass_that_gradients_flow_through_is_no_evaluation(
    torch: Any, probe: CallProbe, as_list: bool
) -> None:
    """A frozen model that judges what another makes."""

    class Judge(torch.nn.Linear):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            seen = super().forward(x)
            return {"of layers": [seen, seen * 2]} if as_list else seen

    model, judge = torch.nn.Linear(3, 3), Judge(3, 1)
    judge.eval().requires_grad_(False)
    for _ in range(3):
        judged = judge(model(torch.ones(2, 3)))
        loss = (judged["of layers"][1] if as_list else judged).sum()
        assert len([one for one in probe.passes if not one.training]) <= 1
        loss.backward()
        assert probe.passes == []
    assert model.weight.grad.sum() == 3 * 3 * 2 * judge.weight.sum() * (2 if as_list else 1)
    judge(model(torch.ones(2, 3)))  # and is not differentiated
    (left,) = (one for one in probe.passes if not one.training)
    assert left.stack[-1].source.endswith("# and is not differentiated")


@pytest.mark.parametrize("is_leaf", [False, True])
def test_a_pass_whose_layers_keep_losses_is_no_evaluation(
    torch: Any, probe: CallProbe, is_leaf: bool
) -> None:
    """Of a picture whose style is changed: what its network returns nobody uses."""

    class Keeping(torch.nn.Sequential):  # type: ignore[misc]
        def forward(self, picture: Any) -> Any:
            inside = self[0](picture)
            self.loss = inside.square().sum()
            return self[1](inside)

    network = Keeping(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)).eval().requires_grad_(False)
    picture = torch.ones(2, 3, requires_grad=True)
    network(picture).sum().backward()
    network(picture if is_leaf else picture * 1)
    network.loss.backward()
    assert probe.passes == []


def test_a_result_can_still_be_saved(torch: Any, probe: CallProbe) -> None:
    model = torch.nn.Linear(3, 1)
    found_by_discovery(torch, model)
    result = model.eval()(torch.ones(2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.save(result, io.BytesIO())
    assert len(probe.passes) == 1


def test_what_cannot_be_differentiated_keeps_nothing(torch: Any, probe: CallProbe) -> None:
    model = torch.nn.Linear(3, 1)
    found_by_discovery(torch, model)
    model.eval().requires_grad_(False)
    model(torch.ones(2, 3))
    assert probe.passes == []


def test_steps_that_a_scaler_leaves_out(torch: Any, probe: CallProbe) -> None:
    assert probe.skips is None
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for factor in (1.0, float("inf"), 1.0):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert probe.skips == 1


def test_a_scaler_that_is_switched_off_is_none(torch: Any, probe: CallProbe) -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([weight], lr=0.1)
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    scaler.scale(weight.sum()).backward()
    scaler.step(optimizer)
    assert probe.skips is None
