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
from hotloop.levers.unused_outputs import LEAST_CALLS, PATIENCE, UnusedOutputs, Watch

STEPS, ROWS, KINDS = LEAST_CALLS + 4, 4, 3


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
    evidence: dict[str, Any] = {"outputs": 1, "bytes": size, "runs": STEPS - 1 - LEAST_CALLS}
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
    reason = "all that the model returns may be differentiated"
    assert training.lever.receipt() == Receipt("unused_outputs", False, reason)


def by_backward(torch: Any, loss: Any, weights: list[Any]) -> None:
    loss.backward()


def by_backward_to(torch: Any, loss: Any, weights: list[Any]) -> None:
    loss.backward(inputs=weights)


def by_grad(torch: Any, loss: Any, weights: list[Any]) -> None:
    torch.autograd.grad(outputs=loss, inputs=weights, allow_unused=True)


@pytest.mark.parametrize("differentiate", [by_backward, by_backward_to, by_grad])
@pytest.mark.parametrize("complex", [False, True])
def test_what_is_differentiated_after_all_is_an_error(
    differentiate: Any, complex: bool, torch: Any, zeros: list[int]
) -> None:
    """Never a gradient that is lost, whichever way it is asked for."""
    from tests.levers.jobs import under

    def results(logits: Any, loss: Any) -> Any:
        return (torch.fft.fft(logits) if complex else logits), loss

    training = Training(torch, results)
    with under(training.lever, Compile()):
        training.train(training.model, first, STEPS)
        x, y = torch.ones(1, 2), torch.zeros(1, dtype=torch.long)
        logits, loss = training.model(x, y)
        both_losses = loss + logits.abs().mean()
        with pytest.raises(RuntimeError, match="without it"):
            differentiate(torch, both_losses, list(training.model.parameters()))


def test_a_second_pass_through_the_same_call_is_seen(torch: Any, zeros: list[int]) -> None:
    from tests.levers.jobs import under

    training = Training(torch, in_a_tuple)
    x, y = torch.ones(1, 2), torch.zeros(1, dtype=torch.long)
    with under(training.lever, Compile()):
        for _ in range(STEPS):
            logits, loss = training.model(x, y)
            loss.backward(retain_graph=True)
            logits.square().mean().backward()
    assert not training.lever.receipt().applied


def test_what_one_model_returns_may_be_differentiated_through_another(
    torch: Any, zeros: list[int]
) -> None:
    """An encoder and a decoder, each with a loss of its own."""
    from tests.levers.jobs import under

    lever = UnusedOutputs()
    encoder, decoder = (model(torch, in_a_tuple) for _ in range(2))
    x, y = torch.ones(1, 2), torch.zeros(1, dtype=torch.long)
    with under(lever, Compile()):
        optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
        for _ in range(STEPS):
            hidden, one = encoder(x, y)
            _, other = decoder(hidden[:, :2], y)
            (one + other).backward()
            optimizer.step()
    assert lever.receipt().evidence["outputs"] == 1  # the decoder's


def test_a_generator_of_losses_is_left_to_who_asked(torch: Any, zeros: list[int]) -> None:
    from tests.levers.jobs import under

    training = Training(torch, in_a_tuple)
    x, y = torch.ones(1, 2), torch.zeros(1, dtype=torch.long)
    with under(training.lever, Compile()):
        for _ in range(STEPS):
            training.model.zero_grad()
            losses = [training.model(x, y)[1]]
            torch.autograd.backward(loss for loss in losses)
            assert training.model.head.weight.grad.any()
    assert not training.lever.receipt().applied


def test_what_needs_no_gradient_gets_none(torch: Any, zeros: list[int]) -> None:
    from tests.levers.jobs import under

    training = Training(torch, in_a_tuple)
    x, y = torch.ones(1, 2), torch.zeros(1, dtype=torch.long)
    with under(training.lever, Compile()):
        training.train(training.model, first, STEPS)
        training.model.requires_grad_(False)
        logits, _ = training.model(x, y)
    assert not logits.requires_grad


def test_a_model_that_is_compiled_in_pieces(torch: Any, zeros: list[int]) -> None:
    def broken(logits: Any, loss: Any) -> Any:
        torch._dynamo.graph_break()
        return logits, loss

    training = Training(torch, broken)
    wanted = training.plain()
    torch.testing.assert_close(training(), wanted)
    reason = "the model is compiled in pieces"
    assert training.lever.receipt() == Receipt("unused_outputs", False, reason)


def test_names_in_training_and_places_elsewhere(torch: Any, zeros: list[int]) -> None:
    def named(logits: Any, loss: Any) -> Any:
        return [logits] if loss is None else {"logits": logits, "loss": loss}

    from tests.levers.jobs import under

    training = Training(torch, named)
    with under(training.lever, Compile()):
        training.train(training.model, lambda result, step: result["loss"], STEPS)
        with torch.no_grad():
            assert training.model(torch.ones(1, 2))[0].shape == (1, KINDS)
    assert training.lever.receipt().applied


def test_what_calls_have_computed_is_not_kept_beyond_a_step(torch: Any) -> None:
    lever, copied = UnusedOutputs(), torch.nn.Linear(1, 1)
    watch = lever._watches.setdefault(copied, Watch())
    watch.pending.append({})
    lever._stepped((), None, 0)
    assert watch.pending == []  # an averaged copy, say, that is called and never differentiated


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
        for _ in range(LEAST_CALLS):
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

    assert "no run looked for" in UnusedOutputs.expected(seen()).reason
    assert expected(False).reason == "no model was seen to compute its loss itself"
    assert 0 < expected(True).share < 0.12
