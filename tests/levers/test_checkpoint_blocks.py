"""Blocks are computed again, and everything else stays as it was."""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from hotloop import timeline
from hotloop.levers import graphs
from hotloop.levers.bf16 import Bf16
from hotloop.levers.checkpoint_blocks import CheckpointBlocks
from hotloop.levers.compile import Compile
from hotloop.measurement import Kind, Memory
from hotloop.runtime.watching import Watch
from hotloop.timeline import Phase
from tests import builders

STEPS = 8


@pytest.fixture
def blocks(torch: Any) -> Iterator[Any]:
    """`tests.levers.block_jobs`, which imports torch; its classes are put back afterwards."""
    from tests.levers import block_jobs

    torch.set_num_threads(1)
    kinds = [*block_jobs.KINDS, torch.nn.TransformerEncoderLayer, torch.nn.Sequential]
    before = [(kind, vars(kind).get("forward")) for kind in kinds]
    yield block_jobs
    for kind, forward in before:
        if forward is not None:
            kind.forward = forward
        elif "forward" in vars(kind):
            del kind.forward


@contextmanager
def kept(torch: Any) -> Iterator[Callable[[], int]]:
    """Bytes that autograd has been asked to keep, as a script could count them itself."""
    total = [0]

    def keep(tensor: Any) -> Any:
        total[0] += tensor.nbytes
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        yield lambda: total[0]


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("norm", ["LayerNorm", "BatchNorm1d"])
def test_a_training_is_the_same_to_the_bit(every: int, norm: str, jobs: Any, blocks: Any) -> None:
    """With dropout, whose masks are drawn again, and running statistics, counted once."""
    plain, then = blocks.train(norm)
    lever = CheckpointBlocks(every)
    with jobs.under(lever):
        losses, now = blocks.train(norm)
    assert losses == plain
    assert blocks.same(then, now)
    evidence = lever.receipt().evidence
    assert evidence["blocks"] == evidence["recomputed"] == blocks.DEPTH // every
    # All of them in every step, but for the scout's first.
    assert evidence["recomputations"] == STEPS * blocks.DEPTH // every - 1


@pytest.mark.parametrize(("every", "computed"), [(1, 6), (1.25, 5), (1.5, 4), (2, 3)])
def test_of_six_blocks(every: float, computed: int, jobs: Any, torch: Any) -> None:
    class Block(torch.nn.Sequential):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return super().forward(x)

    blocks = [Block(torch.nn.Linear(4, 4), torch.nn.ReLU()) for _ in range(6)]
    model, lever = torch.nn.Sequential(*blocks), CheckpointBlocks(every)
    with jobs.under(lever):
        for _ in range(2):  # in the first, one is looked at
            model(torch.randn(2, 4)).sum().backward()
    assert lever.receipt().evidence["recomputed"] == computed


def test_less_is_kept_the_more_blocks_there_are(jobs: Any, torch: Any, blocks: Any) -> None:
    sizes = []
    for lever in (None, CheckpointBlocks(2), CheckpointBlocks(1)):
        model = blocks.Stack()
        with jobs.under(*([lever] if lever else [])):
            blocks.loss_of(model).backward()  # the scout's
            with kept(torch) as size:
                blocks.loss_of(model)
            sizes.append(size())
        blocks.put_back()
    assert sizes[1] < 0.7 * sizes[0]
    assert sizes[2] < 0.3 * sizes[0]


def test_already_in_the_first_step(jobs: Any, torch: Any, blocks: Any) -> None:
    """Where a job without memory ends. But for one block, which is looked at first."""
    with kept(torch) as size:
        blocks.loss_of(blocks.Stack())
        plain = size()
    with jobs.under(CheckpointBlocks()), kept(torch) as size:
        blocks.loss_of(blocks.Stack())
        assert size() < 0.5 * plain


def test_steps_losses_and_phases_are_seen_as_ever(torch: Any, blocks: Any) -> None:
    def watched(*levers: CheckpointBlocks) -> tuple[Watch, list[timeline.Step]]:
        watch = Watch(torch)
        for lever in levers:
            lever.apply(torch, watch.seams)
        watch.driver.attach()
        blocks.train()
        watch.driver.detach()
        events = watch.clock.events
        return watch, timeline.steps(events, watch.loss.losses(events))

    _, then = watched()
    lever = CheckpointBlocks()
    watch, now = watched(lever)
    assert lever.receipt().applied
    assert [step.losses for step in now] == [step.losses for step in then]
    assert len(watch.driver.roots.roots) == 1
    kinds = watch.clock.events.kind
    assert kinds.count(Kind.FORWARD_BEGIN) == STEPS  # the first one, too, is seen
    assert kinds.count(Kind.BACKWARD_BEGIN) == kinds.count(Kind.OPTIMIZER_BEGIN) == STEPS
    for step in now[1:]:
        assert set(step.phases) >= {Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER}
    model = watch.inventory.inventory(watch.clock.events).models[0]
    assert (model.name, model.blocks) == ("Stack", blocks.DEPTH)


def test_the_model_can_be_saved_copied_and_loaded(jobs: Any, torch: Any, blocks: Any) -> None:
    model, plain = blocks.Stack(), blocks.Stack()
    lever = CheckpointBlocks()
    with jobs.under(lever):
        blocks.train(model=model)
        assert list(model.state_dict()) == list(plain.state_dict())
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=False)
        copied = copy.deepcopy(model)
        assert blocks.same(loaded, model) and blocks.same(copied, model)
        before = lever.receipt().evidence["recomputations"]
        with torch.no_grad():
            copied.o.weight.zero_()
        assert model.o.weight.abs().sum() > 0  # a copy computes with weights of its own
        blocks.loss_of(copied.h[0]).backward()
    assert lever.receipt().evidence["recomputations"] == before
    plain.load_state_dict(model.state_dict())


def test_hooks_of_the_script_run_once(jobs: Any, blocks: Any) -> None:
    model, met = blocks.Stack(), []
    model.h[1].register_forward_hook(lambda module, args, output: met.append(1))
    with jobs.under(CheckpointBlocks()):
        blocks.train(model=model)
    assert len(met) == STEPS


def test_evaluation_is_left_alone(jobs: Any, torch: Any, blocks: Any) -> None:
    lever, model = CheckpointBlocks(), blocks.Stack()
    with jobs.under(lever):
        blocks.train(model=model, steps=2)
        before = lever.receipt().evidence
        with torch.no_grad():
            blocks.loss_of(model)
    assert lever.receipt().evidence == before


def test_blocks_of_torchs_own_classes(jobs: Any, torch: Any, blocks: Any) -> None:
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    for model in (
        nn.TransformerEncoder(layer, 4),
        nn.Sequential(*(nn.Sequential(nn.Linear(16, 16), nn.ReLU()) for _ in range(4))),
    ):
        lever = CheckpointBlocks()
        with jobs.under(lever):
            blocks.train(model=model, shape=(2, 8, 16))
        assert lever.receipt().evidence["recomputed"] == 4


def test_a_block_that_inherits_its_forward(jobs: Any, blocks: Any) -> None:
    """From a class whose blocks are computed again, too: each once, and not twice."""
    model = blocks.Stack()
    for _ in range(3):
        model.h.append(blocks.Heir(16))
    plain = blocks.train(model=copy.deepcopy(model))[0]
    lever = CheckpointBlocks()
    with jobs.under(lever):
        assert blocks.train(model=model)[0] == plain
    assert lever.receipt().evidence["recomputed"] == blocks.DEPTH + 3
    assert lever.receipt().evidence["recomputations"] == STEPS * (blocks.DEPTH + 3) - 2


def test_under_bfloat16_it_is_computed_again_in_bfloat16(
    jobs: Any, torch: Any, blocks: Any
) -> None:
    with torch.backends.mkldnn.flags(enabled=False):
        with jobs.under(Bf16()):
            plain = blocks.train()[0]
        lever = CheckpointBlocks()
        with jobs.under(Bf16(), lever):
            found = blocks.train()[0]
    # In the first step bf16 by itself finds no model yet; from then on they train alike.
    assert found == pytest.approx(plain, rel=0.05)
    assert lever.receipt().applied


class TestCompiled:
    @pytest.fixture(autouse=True)
    def quick(self, torch: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        eager = torch._dynamo.lookup_backend("aot_eager_decomp_partition")
        monkeypatch.setattr(graphs, "inductor", lambda torch, mode: eager)
        torch._dynamo.reset()
        yield
        torch._dynamo.reset()

    def test_it_is_part_of_the_graph(self, jobs: Any, torch: Any, blocks: Any) -> None:
        """Whole: no break where a block begins, and nothing of ours in it."""

        losses = []

        def saved(*levers: Any) -> int:
            torch.manual_seed(1)
            model = blocks.Stack(dropout=0.0)
            with jobs.under(*levers):
                losses.append(blocks.train(model=model, steps=3)[0])
                loss = blocks.loss_of(model)
            (node,) = [one for one in blocks.nodes(loss) if "Compiled" in one.name()]
            tensors = [one for one in node.saved_tensors if one is not None]
            blocks.put_back()
            return sum(one.nbytes for one in tensors if one.shape[0] == blocks.BATCH)

        # A listener at the graphs, so that this one too is compiled by the quick backend.
        plain = saved(Compile(), Listening())
        lever, compiling = CheckpointBlocks(), Compile()
        assert saved(lever, compiling) < 0.5 * plain
        assert losses[1] == pytest.approx(losses[0], rel=1e-5)
        assert compiling.receipt().evidence["graph_breaks"] == 0
        assert compiling.receipt().evidence["graphs"] == 1
        assert lever.receipt().evidence == {"blocks": blocks.DEPTH, "in_graphs": blocks.DEPTH}


class Listening(CheckpointBlocks):
    """Hears of graphs and chooses no block."""

    def _call(self, args: Any, kwargs: Any) -> None: ...


class TestNotApplied:
    def reason(self, jobs: Any, model: Any, blocks: Any, **options: Any) -> str:
        lever = CheckpointBlocks()
        with jobs.under(lever):
            blocks.train(model=model, **options)
        assert not lever.receipt().applied
        return lever.receipt().reason

    def test_without_blocks(self, jobs: Any, torch: Any, blocks: Any) -> None:
        model = torch.nn.Linear(16, 3)
        assert self.reason(jobs, model, blocks) == "the model has fewer than 3 blocks alike"

    def test_where_blocks_count_their_calls(self, jobs: Any, blocks: Any) -> None:
        """Computed again they would count twice. From its first call on one is let be."""
        model = blocks.Stack(kind=blocks.Counting)
        found = self.reason(jobs, model, blocks)
        assert found == "the model's blocks remember calls from one call to the next"
        assert {block.calls for block in model.h} == {STEPS}

    def test_where_blocks_change_a_buffer(self, jobs: Any, blocks: Any) -> None:
        model = blocks.Stack(kind=blocks.Averaging)
        found = self.reason(jobs, model, blocks)
        assert found == "the model's blocks remember mean from one call to the next"

    def test_where_the_script_does_it_itself(self, jobs: Any, torch: Any, blocks: Any) -> None:
        model = blocks.Stack(kind=blocks.Block, own=torch.utils.checkpoint.checkpoint)
        found = self.reason(jobs, model, blocks)
        assert found == "the script computes its blocks again itself"

    def test_where_nothing_is_differentiated(self, jobs: Any, blocks: Any) -> None:
        lever = CheckpointBlocks()
        with jobs.under(lever):
            blocks.loss_of(blocks.Stack())
        assert "nothing was differentiated" in lever.receipt().reason


class TestExpectation:
    @staticmethod
    def seen(jobs: Any, **model: Any) -> Any:
        memory = Memory(host_peak=2**30)
        made = jobs.seen(
            measurement=builders.measurement(memory=memory), models=[builders.model(**model)]
        )
        return replace(made, objective="memory")

    def test_of_blocks(self, jobs: Any) -> None:
        found = CheckpointBlocks.expected(self.seen(jobs, blocks=12, trainable=2**24))
        assert found.share == pytest.approx(1 - 2**28 / 2**30)

    def test_it_is_not_for_speed(self, jobs: Any) -> None:
        quick = replace(self.seen(jobs, blocks=12), objective="speed")
        assert "costs time" in CheckpointBlocks.expected(quick).reason

    def test_reasons_not_to(self, jobs: Any) -> None:
        def reason(**model: Any) -> str:
            return CheckpointBlocks.expected(self.seen(jobs, **model)).reason

        assert "3 or more blocks" in reason(blocks=0)
        assert "compiles its model itself" in reason(blocks=12, compiled=True)
        assert "optimizer" in reason(blocks=12, trainable=2**26)
        assert all(CheckpointBlocks(every=one).problem() for one in (0, 0.5, math.inf, math.nan))


@pytest.mark.gpu
def test_on_a_gpu_the_peak_falls_and_the_blocks_run_again(
    jobs: Any, torch: Any, blocks: Any
) -> None:
    """The backward pass runs in a thread of its own there."""
    if not torch.cuda.is_available():
        pytest.skip("no GPU")

    def peak(*levers: Any) -> int:
        torch.cuda.reset_peak_memory_stats()
        with jobs.under(*levers):
            # Large beside the tens of megabytes that products take to work in.
            blocks.train(device="cuda", shape=(1 << 18, 16), steps=4)
        return int(torch.cuda.max_memory_allocated())

    lever = CheckpointBlocks()
    assert peak(lever) < 0.7 * peak()
    assert lever.receipt().evidence["recomputed"] == blocks.DEPTH
