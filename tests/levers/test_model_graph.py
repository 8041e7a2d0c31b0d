"""A model's passes as graphs. Where there is no GPU another recorder stands in for CUDA's."""

from __future__ import annotations

import copy
import gc
import io
import itertools
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from hotloop.levers.base import MUCH_FASTER, NO_MODEL
from hotloop.levers.model_graph import ModelGraph
from hotloop.measurement import Software
from tests import builders
from tests.levers.model_graphs import (
    ModelGraphOnCpu,
    plain_network,
    recorded,
    tallies,
    trained_alike,
)

STEPS = 9


@pytest.fixture
def torch(fresh_torch: Any) -> Any:
    return fresh_torch


def normed_network(torch: Any) -> Any:
    """Its averages are buffers that every pass in training updates.

    Without a bias: the norm takes it away again, so its gradient is a rounding error, which Adam
    makes a full step of, another one in every process.
    """
    nn = torch.nn
    convolution = nn.Conv1d(1, 3, 3, bias=False)
    return nn.Sequential(convolution, nn.BatchNorm1d(3), nn.ReLU(), nn.Flatten())


def sized(torch: Any, model: Any, rows: int) -> Any:
    is_convolved = isinstance(model[0], torch.nn.Conv1d)
    return torch.randn(rows, 1, 6) if is_convolved else torch.randn(rows, 4)


def train(torch: Any, model: Any, sizes: Sequence[int] = (6,) * STEPS) -> list[float]:
    """With a loss outside the model, as most scripts have it."""
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    losses = []
    for rows in sizes:
        optimizer.zero_grad()
        loss = model(sized(torch, model, rows)).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def both(
    torch: Any, jobs: Any, make: Callable[[Any], Any], lever: ModelGraph, **how: Any
) -> tuple[Any, Any]:
    """The trained model without and with it. Their losses are the same."""
    torch.manual_seed(0)
    plain = make(torch)
    planned = copy.deepcopy(plain)
    expected = train(torch, plain, **how)
    with jobs.under(lever):
        assert train(torch, planned, **how) == pytest.approx(expected, rel=1e-5)
    return plain, planned


@pytest.mark.parametrize("make", [plain_network, normed_network])
def test_the_same_training(jobs: Any, torch: Any, make: Any) -> None:
    lever = ModelGraphOnCpu()
    plain, planned = both(torch, jobs, make, lever)
    for one, other in zip(plain.state_dict().values(), planned.state_dict().values(), strict=True):
        torch.testing.assert_close(one, other)
    receipt = lever.receipt()
    assert receipt.applied
    # The first call has found the model, the second has the sizes of the others, the third is
    # warm-up, and the fourth is recorded. Only then does it lie still what comes backwards.
    replays = 2 * (STEPS - 3) - 1
    assert receipt.evidence == {
        "graphs": 2,
        "replays": replays,
        "as_they_are": 3,
        "other_shapes": 0,
    }


def test_a_short_batch_and_evaluation_run_as_they_are(jobs: Any, torch: Any) -> None:
    lever = ModelGraphOnCpu()
    _, planned = both(torch, jobs, plain_network, lever, sizes=[6] * 6 + [2] + [6] * 3)
    assert lever.receipt().evidence["other_shapes"] == 1
    before = lever.receipt()
    with jobs.under(lever), torch.no_grad():
        planned.eval()
        planned(torch.randn(6, 4))
    assert lever.receipt() == before


def test_a_first_batch_of_other_sizes(jobs: Any, torch: Any) -> None:
    """Some scripts try their model once."""
    lever = ModelGraphOnCpu()
    both(torch, jobs, plain_network, lever, sizes=[1, 1, 2] + [6] * STEPS)
    evidence = lever.receipt().evidence
    assert evidence["graphs"] == 2 and evidence["other_shapes"] == 0


def test_no_two_batches_alike(jobs: Any, torch: Any) -> None:
    lever = ModelGraphOnCpu()
    both(torch, jobs, plain_network, lever, sizes=[1, 2, 3, 4, 5, 4, 3])
    assert lever.receipt().reason == "no two batches in a row are tensors of the same sizes"


def test_sizes_that_always_change(jobs: Any, torch: Any) -> None:
    lever = ModelGraphOnCpu()
    both(torch, jobs, plain_network, lever, sizes=[6, 6, 6, 6, *(1, 2, 3, 4, 5) * 4])
    receipt = lever.receipt()
    assert not receipt.applied
    assert receipt.reason == "most passes differ from the first"


def test_what_python_decides_is_checked_at_every_call(jobs: Any, torch: Any) -> None:
    """A recording knows one way through a model; what it captured knows when it was taken."""

    class Gated(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.doubles = torch.nn.Linear(4, 2), False

        def forward(self, x: Any) -> Any:
            x = self.linear(x)
            return 2 * x if self.doubles else x

    lever, model = ModelGraphOnCpu(), Gated()
    x = torch.randn(6, 4)
    with jobs.under(lever):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
        for step in range(12):
            model.doubles = step >= 6
            made = model(x)
            made.sum().backward()
            optimizer.step()
            optimizer.zero_grad()
            expected = torch.nn.functional.linear(x, model.linear.weight, model.linear.bias)
            torch.testing.assert_close(made, expected * (2 if step >= 6 else 1))
    assert recorded(lever) == [1, 1, 1, 1]


def test_passes_that_cannot_be_recorded(jobs: Any, torch: Any) -> None:
    lever = ModelGraphOnCpu(fails="operation not permitted")
    both(torch, jobs, plain_network, lever)
    why = "it cannot be captured: operation not permitted"
    assert lever.receipt().reason == f"no pass was replayed: {why}"


def test_too_few_steps(jobs: Any, torch: Any) -> None:
    lever = ModelGraphOnCpu()
    both(torch, jobs, plain_network, lever, sizes=[6, 6, 6])
    assert lever.receipt().reason.endswith("there were too few steps to record one")


Loop = Callable[[Any, Any, Any], None]


def added_up(torch: Any, model: Any, optimizer: Any) -> None:
    """Gradients of several passes."""
    optimizer.zero_grad()
    for _ in range(3):
        model(torch.randn(6, 4)).square().mean().backward()
    optimizer.step()


def set_to_zero(torch: Any, model: Any, optimizer: Any) -> None:
    """Gradients are never let go."""
    optimizer.zero_grad(set_to_none=False)
    model(torch.randn(6, 4)).square().mean().backward()
    optimizer.step()


def two_at_once(torch: Any, model: Any, optimizer: Any) -> None:
    """Two forward passes before the first of them is differentiated."""
    optimizer.zero_grad()
    one, other = model(torch.randn(6, 4)), model(torch.randn(6, 4))
    (one.square().mean() + other.sin().mean()).backward()
    optimizer.step()


def twice(torch: Any, model: Any, optimizer: Any) -> None:
    """One pass, differentiated twice."""
    optimizer.zero_grad()
    made = model(torch.randn(6, 4))
    made.square().mean().backward(retain_graph=True)
    made.sin().mean().backward()
    optimizer.step()


def held_for_long(torch: Any, model: Any, optimizer: Any) -> None:
    """Outputs and gradients of all steps, looked at afterwards."""
    optimizer.zero_grad()
    made = model(torch.randn(6, 4))
    made.square().mean().backward()
    optimizer.step()
    held = vars(model).setdefault("held", [])
    held += [(made, made.detach().clone()), (model[0].weight.grad, model[0].weight.grad.clone())]
    for one, copy_of_then in held:
        torch.testing.assert_close(one.detach(), copy_of_then)


def changed_output(torch: Any, model: Any, optimizer: Any) -> None:
    """What the model has handed out is written to."""
    optimizer.zero_grad()
    made = model(torch.randn(6, 4))
    made.data.mul_(0.5)
    made.square().mean().backward()
    optimizer.step()


def frozen_now_and_then(torch: Any, model: Any, optimizer: Any) -> None:
    model[0].weight.requires_grad_(len(optimizer.state) % 2 == 0)
    set_to_zero(torch, model, optimizer)


def new_weights(torch: Any, model: Any, optimizer: Any) -> None:
    """Weights that lie elsewhere at every step, as an average that is swapped in does."""
    set_to_zero(torch, model, optimizer)
    for weight in model.parameters():
        weight.data = weight.data.clone()


def with_input_gradients(torch: Any, model: Any, optimizer: Any) -> None:
    """An attack, say: the gradient of what the model is given."""
    optimizer.zero_grad()
    x = torch.randn(6, 4, requires_grad=True)
    model(x).square().mean().backward()
    model((x + x.grad).detach()).square().mean().backward()
    optimizer.step()


LOOPS = (
    added_up,
    set_to_zero,
    two_at_once,
    twice,
    held_for_long,
    changed_output,
    frozen_now_and_then,
    new_weights,
    with_input_gradients,
)


@pytest.mark.parametrize("loop", LOOPS, ids=lambda loop: loop.__name__)
def test_whatever_a_script_does_between_passes(jobs: Any, torch: Any, loop: Loop) -> None:
    lever = trained_alike(torch, jobs, lambda: plain_network(torch), partial(loop, torch))
    assert all(recorded(lever)) or loop is new_weights


def test_two_passes_before_one_is_differentiated(jobs: Any, torch: Any) -> None:
    """What the two have kept lies in two places, by turns."""
    step = partial(two_at_once, torch)
    lever = trained_alike(torch, jobs, lambda: plain_network(torch), step, count=20)
    forward, backward = tallies(lever)
    assert forward.replayed > 15 and backward.replayed > 15
    assert lever.receipt().applied


def test_models_that_are_alike(jobs: Any, torch: Any) -> None:
    """Each has recordings of its own, which go with it: a script may train one after another."""

    def trained(models: Any) -> list[Any]:
        torch.manual_seed(1)
        optimizers = [torch.optim.SGD(one.parameters(), lr=0.05) for one in models]
        for _ in range(STEPS):
            for model, optimizer in zip(models, optimizers, strict=True):
                added_up(torch, model, optimizer)
        return [p.detach().clone() for model in models for p in model.parameters()]

    torch.manual_seed(0)
    plain = [plain_network(torch) for _ in range(3)]
    planned = copy.deepcopy(plain)
    expected = trained(plain)
    lever = ModelGraphOnCpu()
    with jobs.under(lever):
        torch.testing.assert_close(trained(planned), expected)
    assert recorded(lever) == [1, 2] * 3


def test_gradients_that_are_held_are_handed_out_as_copies(jobs: Any, torch: Any) -> None:
    """Two passes as they are, one more recording, and from then on all is replayed."""
    lever, model = ModelGraphOnCpu(), plain_network(torch)
    with jobs.under(lever):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for _ in range(20):
            added_up(torch, model, optimizer)
    assert recorded(lever) == [1, 2]
    assert tallies(lever)[1].others < 6 and lever.receipt().applied


def test_gradients_lie_where_they_lay(jobs: Any, torch: Any) -> None:
    """So that an update of them can be replayed, too."""
    lever, model = ModelGraphOnCpu(), plain_network(torch)
    places = set()
    with jobs.under(lever):
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        for step in range(9):
            optimizer.zero_grad()
            model(torch.randn(6, 4)).square().mean().backward()
            if step > 3:
                places.add(model[0].weight.grad.data_ptr())
    assert len(places) == 1


def test_checkpoints_pickles_copies_and_memory(jobs: Any, torch: Any) -> None:
    lever = ModelGraphOnCpu()
    _, model = both(torch, jobs, plain_network, lever)
    torch.save(model, file := io.BytesIO())
    file.seek(0)
    x = torch.randn(6, 4)
    torch.testing.assert_close(torch.load(file, weights_only=False)(x), model(x))
    other = copy.deepcopy(model)
    with torch.no_grad():
        for weight in other.parameters():
            weight.zero_()
    assert not other(x).any() and model(x).any()
    gone = weakref.ref(model)
    memory = [
        weakref.ref(next(iter(each._recordings.values()))) for each in lever._backends[0]._passes
    ]
    assert all(each() is not None for each in memory)
    del model, other
    gc.collect()
    assert gone() is None
    assert all(each() is None for each in memory)


def test_what_it_leaves_alone(jobs: Any, torch: Any) -> None:
    lever = ModelGraph()
    with jobs.under(lever):
        train(torch, plain_network(torch))
    assert lever.receipt().reason == "the model is not on a GPU"
    compiled = plain_network(torch)
    compiled._compiled_call_impl = compiled._call_impl
    fake = ModelGraphOnCpu()
    with jobs.under(fake):
        train(torch, compiled)
    assert fake.receipt().reason == "the script already compiles its model"
    assert ModelGraph().receipt().reason == NO_MODEL


def test_it_is_offered_where_a_gpu_waits(jobs: Any) -> None:
    on_gpu = replace(builders.measurement(), software=Software(device=builders.GPU))
    waits = replace(jobs.seen(measurement=on_gpu), gpu_idle=0.4)
    assert ModelGraph.expected(jobs.seen()).reason == "CUDA graphs need a GPU"
    assert ModelGraph.expected(waits).worth_from == 1
    assert 0 < ModelGraph.expected(waits).share < 0.5
    assert ModelGraph.expected(replace(waits, gpu_idle=0.0)).worth_from == MUCH_FASTER
    compiled = jobs.seen(measurement=on_gpu, models=[builders.model(compiled=True)])
    assert ModelGraph.expected(compiled).reason == "the script already compiles its model"
    assert ModelGraph.expected(jobs.seen(measurement=on_gpu, models=[])).reason == NO_MODEL


@pytest.mark.gpu
@pytest.mark.parametrize("make", [plain_network, normed_network])
@pytest.mark.parametrize("clears", ["before", "after", "to zero"])
def test_on_a_gpu(jobs: Any, torch: Any, make: Any, clears: str) -> None:
    """However the script clears its gradients, and with an epoch's last, shorter batch."""
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")

    def trained(model: Any) -> list[Any]:
        torch.manual_seed(1)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        kept = []
        for rows in ([6] * 10 + [2]) * 3:
            x = sized(torch, model, rows).cuda()
            if clears != "after":
                optimizer.zero_grad(set_to_none=clears == "before")
            loss = model(x).square().mean()
            if clears == "after":
                optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            kept.append(loss.item())
            with torch.no_grad():
                model.eval()(x)
                model.train()
        return [*kept, *(value.clone() for value in model.state_dict().values())]

    torch.manual_seed(0)
    plain = make(torch).cuda()
    planned = copy.deepcopy(plain)
    expected = trained(plain)
    lever = ModelGraph()
    with jobs.under(lever):
        torch.testing.assert_close(trained(planned), expected, rtol=1e-4, atol=1e-5)
    receipt = lever.receipt()
    assert receipt.applied and receipt.evidence["other_shapes"] == 3
    assert sum(tally.replayed - tally.others for tally in tallies(lever)) > 0


@pytest.mark.gpu
def test_on_a_gpu_each_replay_draws_masks_of_its_own_for_both_passes(jobs: Any, torch: Any) -> None:
    """An examination would not show it: dropout is off there."""
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")

    class Dropped(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4096))

        def forward(self, x: Any) -> Any:
            return torch.nn.functional.dropout(x * self.weight, 0.5)

    model, x, seen = Dropped().cuda(), torch.ones(4096, device="cuda"), []
    lever = ModelGraph()
    with jobs.under(lever):
        for _ in range(12):
            model.zero_grad()
            made = model(x)
            made.sum().backward()
            torch.testing.assert_close(model.weight.grad, made.detach())
            seen.append(made.detach().clone())
    assert lever.receipt().applied
    assert all(not torch.equal(one, other) for one, other in itertools.combinations(seen, 2))
    assert all(0.4 < float((one == 0).float().mean()) < 0.6 for one in seen)


@pytest.mark.gpu
@pytest.mark.parametrize(("dtype", "is_recorded"), [("float32", False), ("bfloat16", True)])
def test_on_a_gpu_attention_with_dropout_ends_no_job(
    jobs: Any, torch: Any, dtype: str, is_recorded: bool
) -> None:
    """In float32 torch takes the kernel that keeps its seed on the host, or on the GPU."""
    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")

    class Attention(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.project = torch.nn.Linear(64, 192)

        def forward(self, x: Any) -> Any:
            parts = self.project(x).view(2, 32, 3, 4, 16).permute(2, 0, 3, 1, 4)
            return torch.nn.functional.scaled_dot_product_attention(*parts, dropout_p=0.2)

    kind = getattr(torch, dtype)
    model = Attention().cuda().to(kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    lever = ModelGraph()
    with jobs.under(lever):
        for _ in range(12):
            optimizer.zero_grad()
            loss = model(torch.randn(2, 32, 64, device="cuda", dtype=kind)).square().mean()
            loss.backward()
            optimizer.step()
            assert bool(loss.isfinite())
    assert lever.receipt().applied is is_recorded
