"""Whatever a job's method returns that cannot be trained, one sentence names it."""

from __future__ import annotations

from typing import Any

import pytest

from hotloop.errors import JobInvalid
from hotloop.runtime.owned.loop import Loop


def invalid(torch: Any, owned: Any, **methods: Any) -> str:
    kind = type("Mine", (owned.Plain,), methods)
    with pytest.raises(JobInvalid) as caught:
        Loop(torch, kind()).train()
    assert caught.value.remedy
    assert caught.value.sentence.startswith("Mine.")
    return caught.value.sentence


@pytest.mark.parametrize("returned", [None, 3, "model", dict])
def test_no_module(returned: Any, torch: Any, owned: Any) -> None:
    said = invalid(torch, owned, model=lambda self: returned)
    assert "model() must return a torch.nn.Module, not" in said


def test_a_module_that_cannot_learn(torch: Any, owned: Any) -> None:
    said = invalid(torch, owned, model=lambda self: torch.nn.ReLU())
    assert "parameters that require grad; this ReLU has none" in said


def test_no_optimizer(torch: Any, owned: Any) -> None:
    said = invalid(torch, owned, optimizer=lambda self, parameters: None)
    assert "optimizer(parameters) must return a torch.optim.Optimizer, not None" in said


def test_an_optimizer_of_something_else(torch: Any, owned: Any) -> None:
    other = torch.nn.Linear(2, 2)
    said = invalid(
        torch, owned, optimizer=lambda self, _: torch.optim.SGD(other.parameters(), lr=1)
    )
    assert "of the parameters it is given" in said


def test_no_schedule(torch: Any, owned: Any) -> None:
    said = invalid(torch, owned, schedule=lambda self, optimizer: 0.1)
    assert "schedule(optimizer) must return a learning-rate scheduler or None, not a float" in said


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda loss: loss.detach(), "must return a tensor that requires grad"),
        (lambda loss: loss.item(), "one floating-point number, not a float"),
        (lambda loss: None, "one floating-point number, not None"),
        (lambda loss: loss.long(), "one floating-point number, not a Tensor"),
        (lambda loss: loss.expand(3), "not one of shape (3,)"),
        (lambda loss: (loss, 1, 2), "(sum, weight), not a tuple of 3"),
        (lambda loss: (loss, "many"), "with a number as its weight, not a str"),
    ],
)
def test_no_loss(change: Any, words: str, torch: Any, owned: Any) -> None:
    said = invalid(
        torch, owned, loss=lambda self, model, batch: change(owned.Plain.loss(self, model, batch))
    )
    assert "loss(model, batch)" in said
    assert words in said


@pytest.mark.parametrize(
    ("name", "value"),
    [("batch_size", 0), ("batch_size", 2.5), ("microbatch", -1), ("epochs", 0), ("workers", True)],
)
def test_settings_that_make_no_sense(name: str, value: Any, torch: Any, owned: Any) -> None:
    assert f"{name} must be a whole number" in invalid(torch, owned, **{name: value})


def test_a_precision_that_there_is_not(torch: Any, owned: Any) -> None:
    assert "float32, bfloat16, float16, not 'fp8'" in invalid(torch, owned, precision="fp8")


@pytest.mark.parametrize(
    ("name", "method", "written"),
    [
        ("loss", lambda self, model: None, "loss(self, model, batch)"),
        ("model", lambda self, size: None, "model(self)"),
        ("optimizer", lambda self: None, "optimizer(self, parameters)"),
        ("evaluate", lambda self: None, "evaluate(self, model)"),
    ],
)
def test_a_method_that_takes_something_else(
    name: str, method: Any, written: str, torch: Any, owned: Any
) -> None:
    said = invalid(torch, owned, **{name: method})
    assert said == f"Mine.{name} must be written as {written}."


@pytest.mark.parametrize("found", ["good", {"accuracy": None}, [0.5]])
def test_an_evaluation_that_is_no_number(found: Any, torch: Any, owned: Any) -> None:
    said = invalid(torch, owned, evaluate=lambda self, model: found)
    assert "evaluate(model) must return a number, a dict of numbers or None, not a" in said


@pytest.mark.parametrize("found", [0.5, 1, {"accuracy": 0.5}, None])
def test_evaluations_that_are(found: Any, torch: Any, owned: Any) -> None:
    kind = type("Mine", (owned.Plain,), {"evaluate": lambda self, model: found})
    assert Loop(torch, kind()).train().epochs[-1].evaluation == found


def test_an_evaluation_may_be_a_tensor_of_one(torch: Any, owned: Any) -> None:
    kind = type("Mine", (owned.Plain,), {"evaluate": lambda self, model: torch.tensor([0.5])})
    assert Loop(torch, kind()).train().epochs[-1].evaluation == 0.5
