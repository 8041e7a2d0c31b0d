from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import pytest

from hotloop.levers import graphs
from hotloop.levers.base import Receipt
from hotloop.levers.compile_blocks import CompileBlocks
from tests import builders


@pytest.fixture(autouse=True)
def torch(fresh_torch: Any) -> Any:
    return fresh_torch


@pytest.fixture
def jobs(torch: Any) -> Any:
    from tests.runtime import jobs

    return jobs


@pytest.fixture
def quick(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs are captured as ever, and run as they are: without the seconds a compiler takes."""
    eager = torch._dynamo.lookup_backend("aot_eager")
    monkeypatch.setattr(graphs, "inductor", lambda torch, mode: eager)


@pytest.fixture
def stacks(torch: Any) -> Any:
    from tests.levers import stacks

    return stacks


def losses(torch: Any, jobs: Any, model: Any, *levers: Any) -> list[float]:
    from tests.levers.jobs import under

    kept: list[float] = []

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        loss = jobs.plain_loss(model, x, y)
        kept.append(loss.item())
        return loss

    torch.manual_seed(1)
    with under(*levers):
        jobs.train(model, loss_of=loss_of)
    return kept


def both_ways(torch: Any, jobs: Any, make: Callable[[], Any]) -> tuple[Any, Receipt]:
    """Trained without and with it; the model and the receipt of the second."""
    torch.manual_seed(0)
    plain = losses(torch, jobs, make())
    torch.manual_seed(0)
    model, lever = make(), CompileBlocks()
    assert losses(torch, jobs, model, lever) == pytest.approx(plain, rel=1e-4)
    return model, lever.receipt()


def test_it_compiles_for_real_once_for_all_blocks(torch: Any, jobs: Any, stacks: Any) -> None:
    _, receipt = both_ways(torch, jobs, lambda: stacks.Stack(5))
    runs = 5 * (jobs.STEPS - 1)  # before the first backward pass no model is known
    evidence = {"blocks": 5, "kinds": 1, "graphs": 1, "runs": runs}
    assert receipt == Receipt("compile_blocks", True, evidence=evidence)


@pytest.mark.usefixtures("quick")
def test_blocks_of_torchs_own_classes(torch: Any, jobs: Any, stacks: Any) -> None:
    """Whose forward `Module.compile()` would skip without a word."""
    model, receipt = both_ways(torch, jobs, stacks.of_sequentials)
    assert receipt.evidence["graphs"] == 1 and receipt.evidence["blocks"] == 4
    model, receipt = both_ways(torch, jobs, stacks.of_encoder_layers)
    assert receipt.evidence["graphs"] == 1 and receipt.evidence["blocks"] == 3
    assert all(block._compiled_call_impl is not None for block in model.body.layers)
    assert model._compiled_call_impl is None


@pytest.mark.usefixtures("quick")
def test_two_kinds_of_blocks(torch: Any, jobs: Any, stacks: Any) -> None:
    _, receipt = both_ways(torch, jobs, lambda: stacks.TwoStacks())
    assert receipt.evidence["kinds"] == 2 and receipt.evidence["blocks"] == 7
    assert receipt.evidence["graphs"] == 2


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", ["Stack", "of_sequentials"])
def test_checkpoints_pickles_and_copies(kind: str, torch: Any, jobs: Any, stacks: Any) -> None:
    names = list(getattr(stacks, kind)().state_dict())
    model, receipt = both_ways(torch, jobs, getattr(stacks, kind))
    assert receipt.applied and list(model.state_dict()) == names
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    x = jobs.batch()[0]
    assert torch.equal(torch.load(file, weights_only=False)(x), model(x))
    average = copy.deepcopy(model)
    with torch.no_grad():
        for weight in average.parameters():
            weight.zero_()
    assert not average(x).any() and model(x).any()
    jobs.plain_loss(average, *jobs.batch()).backward()
    assert all(weight.grad is not None for weight in average.parameters())


@pytest.mark.usefixtures("quick")
def test_a_short_batch_and_evaluation(torch: Any, jobs: Any, stacks: Any) -> None:
    from tests.levers.jobs import under

    lever, model = CompileBlocks(), stacks.Stack(4)
    with under(lever):
        jobs.train(model)
        for size in (3, 5, 11, 2):
            jobs.plain_loss(model, *jobs.batch(size)).backward()
        trained = lever.receipt().evidence["graphs"]
        model.eval()
        with torch.no_grad():
            model(jobs.batch(7)[0])
    assert trained == 2  # the first size, and then any
    assert lever.receipt().evidence["graphs"] == 3


@pytest.mark.usefixtures("quick")
def test_blocks_that_count_themselves_share_nothing(torch: Any, jobs: Any, stacks: Any) -> None:
    _, receipt = both_ways(torch, jobs, lambda: stacks.Stack(4, stacks.Numbered))
    assert receipt.reason == "no block was served by what was compiled for another"


@pytest.mark.usefixtures("quick")
def test_a_model_without_blocks(torch: Any, jobs: Any) -> None:
    _, receipt = both_ways(torch, jobs, jobs.Net)
    assert receipt == Receipt("compile_blocks", False, "the model has fewer than 3 blocks alike")


@pytest.mark.parametrize("what", ["model", "block"])
def test_what_the_script_compiles_is_left_alone(
    what: str, torch: Any, jobs: Any, stacks: Any
) -> None:
    model, lever = stacks.Stack(3), CompileBlocks()
    (model if what == "model" else model.blocks[1]).compile(backend="eager")
    losses(torch, jobs, model, lever)
    why = "the script already compiles its model, or its blocks"
    assert lever.receipt() == Receipt("compile_blocks", False, why)
    assert model.blocks[0]._compiled_call_impl is None


def test_what_is_only_evaluated_is_not_compiled(torch: Any, jobs: Any, stacks: Any) -> None:
    from tests.levers.jobs import under

    lever, model = CompileBlocks(), stacks.Stack(3)
    with under(lever), torch.no_grad():
        model(jobs.batch()[0])
    assert lever.receipt().reason == "no model was seen to be called in training"


@pytest.mark.usefixtures("quick")
def test_what_captures_nothing_has_no_receipt(torch: Any, jobs: Any, stacks: Any) -> None:
    lever = CompileBlocks()
    losses(torch, jobs, stacks.Stack(3, stacks.Hidden), lever)
    assert lever.receipt().reason == "torch.compile captured no graph"


@pytest.mark.gpu
def test_on_a_gpu(torch: Any, jobs: Any, stacks: Any) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")

    def train(*levers: Any) -> list[float]:
        from tests.levers.jobs import under

        torch.manual_seed(0)
        model, kept = stacks.Stack(6).cuda(), []
        x, y = (one.cuda() for one in jobs.batch(32))
        with under(*levers):
            for _ in range(jobs.STEPS):
                model.zero_grad()
                with torch.autocast("cuda", torch.bfloat16):  # keeps cast weights until it ends
                    loss = jobs.plain_loss(model, x, y)
                loss.backward()
                with torch.no_grad():
                    for weight in model.parameters():
                        weight -= 0.01 * weight.grad
                kept.append(loss.item())
        return kept

    lever = CompileBlocks()
    assert train(lever) == pytest.approx(train(), rel=0.05)
    assert lever.receipt().evidence["graphs"] == 1


def test_what_it_could_win(torch: Any) -> None:
    from tests.levers.jobs import seen

    assert CompileBlocks.expected(seen(models=[builders.model(blocks=12)])).share > 0.05
    reason = CompileBlocks.expected(seen(models=[builders.model()])).reason
    assert reason == "no model was seen to have 3 or more blocks alike"
    compiled = seen(models=[builders.model(compiled=True, blocks=12)])
    assert CompileBlocks.expected(compiled).reason == "the script already compiles its model"
