from __future__ import annotations

import copy
import io
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hotloop.inspection import Inspection, LossSeen, Operators
from hotloop.levers.base import Expectation, Receipt
from hotloop.levers.compile import Compile
from hotloop.levers.unused_outputs import PATIENCE, UnusedOutputs

STEPS, ROWS, KINDS = 6, 4, 3


@pytest.fixture
def torch(fresh_torch: Any) -> Any:
    return fresh_torch


@pytest.fixture
def zeros(torch: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Gradients that compiled code is handed at each step, without the seconds a compiler takes."""
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch.aot_autograd import make_boxed_func

    counts: list[int] = []

    def way_back(graph: Any, inputs: Any) -> Any:
        handed = [node for node in graph.graph.nodes if "tangents" in node.name]
        counts.append(len(handed))
        return make_boxed_func(graph.forward)

    def as_it_is(graph: Any, inputs: Any) -> Any:
        return make_boxed_func(graph.forward)

    backend = aot_autograd(fw_compiler=as_it_is, bw_compiler=way_back)
    compile = torch.compile
    monkeypatch.setattr(torch, "compile", lambda call, mode: compile(call, backend=backend))
    return counts


def model(torch: Any, results: Callable[[Any, Any], Any]) -> Any:
    class Model(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.head = torch.nn.Linear(2, KINDS)

        def forward(self, x: Any, y: Any = None) -> Any:
            logits = self.head(x)
            if y is None:
                return results(logits, None)
            return results(logits, torch.nn.functional.cross_entropy(logits, y))

    torch.manual_seed(0)
    return Model()


Loss = Callable[[Any, int], Any]


def first(result: Any, step: int) -> Any:
    return result[1]


class Training:
    """Weights after each step, under the levers or as it is."""

    def __init__(self, torch: Any, results: Callable[[Any, Any], Any]) -> None:
        self._torch = torch
        self.lever = UnusedOutputs()
        self.model = model(torch, results)

    def __call__(self, loss_of: Loss = first, steps: int = STEPS) -> list[Any]:
        from tests.levers.jobs import under

        with under(self.lever, Compile()):
            return self.train(self.model, loss_of, steps)

    def plain(self, loss_of: Loss = first, steps: int = STEPS) -> list[Any]:
        return self.train(copy.deepcopy(self.model), loss_of, steps)

    def train(self, model: Any, loss_of: Loss, steps: int) -> list[Any]:
        torch = self._torch
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        weights = []
        for step in range(steps):
            generator = torch.Generator().manual_seed(step)
            x = torch.randn(ROWS, 2, generator=generator)
            y = torch.randint(KINDS, (ROWS,), generator=generator)
            optimizer.zero_grad()
            loss_of(model(x, y), step).backward()
            optimizer.step()
            weights.append(model.head.weight.detach().clone())
        return weights


def in_a_tuple(logits: Any, loss: Any) -> Any:
    return logits, loss


def in_a_list(logits: Any, loss: Any) -> Any:
    return [logits, loss]


def in_a_dict(logits: Any, loss: Any) -> Any:
    return {0: logits, 1: loss}


def in_an_ordered_dict(logits: Any, loss: Any) -> Any:
    return OrderedDict([(1, loss), (0, logits), ("none", None)])


@pytest.mark.parametrize("results", [in_a_tuple, in_a_list, in_a_dict, in_an_ordered_dict])
def test_no_gradient_is_made_for_what_is_not_differentiated(
    results: Any, torch: Any, zeros: list[int]
) -> None:
    training = Training(torch, results)
    wanted = training.plain()
    got = training()
    torch.testing.assert_close(got, wanted)
    assert zeros == [1]  # of the loss
    size = ROWS * KINDS * 4
    evidence: dict[str, Any] = {"outputs": 1, "bytes": size, "runs": STEPS - 2}
    assert training.lever.receipt() == Receipt("unused_outputs", True, evidence=evidence)


def test_without_it_zeros_are_handed_over(torch: Any, zeros: list[int]) -> None:
    """Else there would be nothing to win."""
    from tests.levers.jobs import under

    training = Training(torch, in_a_tuple)
    with under(Compile()):
        training.train(training.model, first, STEPS)
    assert zeros == [2]


def scaled(result: Any, step: int) -> Any:
    return (result[1] / 2 + 0.1) * 2


def both(result: Any, step: int) -> Any:
    return result[1] + result[0].square().mean()


def a_part(result: Any, step: int) -> Any:
    return result[1] + result[0][:, 0].mean()


def test_a_loss_that_the_script_goes_on_with(torch: Any, zeros: list[int]) -> None:
    training = Training(torch, in_a_tuple)
    wanted = training.plain(scaled)
    torch.testing.assert_close(training(scaled), wanted)
    assert zeros == [1]


@pytest.mark.parametrize("loss_of", [both, a_part])
def test_what_is_differentiated_is_left_alone(torch: Any, zeros: list[int], loss_of: Loss) -> None:
    training = Training(torch, in_a_tuple)
    wanted = training.plain(loss_of)
    torch.testing.assert_close(training(loss_of), wanted)
    assert zeros == [2]
    reason = "everything that the model returns is differentiated"
    assert training.lever.receipt() == Receipt("unused_outputs", False, reason)


def test_a_second_loss_that_joins_later_is_an_error(torch: Any, zeros: list[int]) -> None:
    """Never a gradient that is lost."""
    training = Training(torch, in_a_tuple)
    with pytest.raises(RuntimeError, match="without it"):
        training(lambda result, step: both(result, step) if step > 3 else first(result, step))


def test_a_call_without_a_loss_can_be_differentiated(torch: Any, zeros: list[int]) -> None:
    from tests.levers.jobs import under

    training = Training(torch, in_a_tuple)
    with under(training.lever, Compile()):
        training.train(training.model, first, STEPS)
        logits, loss = training.model(torch.ones(1, 2))
        assert loss is None
        logits.sum().backward()
    assert training.model.head.weight.grad.any()


def test_results_look_as_they_did(torch: Any, zeros: list[int]) -> None:
    from tests.levers.jobs import under

    training = Training(torch, in_a_tuple)
    x, y = torch.ones(1, 2), torch.zeros(1, dtype=torch.long)
    with under(training.lever, Compile()):
        training.train(training.model, first, STEPS)
        plain = copy.deepcopy(training.model)
        logits, loss = training.model(x, y)
        assert logits.requires_grad and logits.grad_fn is not None and loss.requires_grad
        assert torch.equal(logits, plain(x, y)[0])
        with torch.no_grad():
            logits, loss = training.model(x, y)
        assert not logits.requires_grad and not loss.requires_grad
        file = io.BytesIO()
        torch.save(training.model.state_dict(), file)
    assert plain._compiled_call_impl is None


def test_a_tensor_by_itself_has_nothing_beside_it(torch: Any, zeros: list[int]) -> None:
    training = Training(torch, lambda logits, loss: loss)
    wanted = training.plain(lambda result, step: result, PATIENCE + 3)
    got = training(lambda result, step: result, PATIENCE + 3)
    torch.testing.assert_close(got, wanted)
    assert zeros == [1]
    assert "a tuple or a dict" in training.lever.receipt().reason


def test_several_passes_before_the_first_way_back(torch: Any, zeros: list[int]) -> None:
    from tests.levers.jobs import under

    training = Training(torch, in_a_tuple)
    x, y = torch.ones(1, 2), torch.zeros(1, dtype=torch.long)
    with under(training.lever, Compile()):
        for _ in range(3):
            one, other = (training.model(x, y)[1] for _ in range(2))
            (one + other).backward()
    assert zeros == [1]
    assert training.lever.receipt().applied


def test_without_a_model(torch: Any) -> None:
    lever = UnusedOutputs()
    assert lever.receipt() == Receipt("unused_outputs", False, "no model was compiled")


def test_it_is_offered_where_a_model_computes_its_loss(torch: Any) -> None:
    from tests.levers.jobs import seen

    def expected(inside_model: bool) -> Expectation:
        losses = [LossSeen("cross_entropy", inside_model, 1, 10_000_000, 4)]
        looked = Inspection(operators=Operators(bytes=1e9), losses=losses)
        return UnusedOutputs.expected(replace(seen(), inspection=looked))

    assert "not looked into" in UnusedOutputs.expected(seen()).reason
    assert expected(False).reason == "no model was seen to compute its loss itself"
    assert 0 < expected(True).share < 0.12
