"""A step as one graph. Where there is no GPU a fake records, and runs again what it replays."""

from __future__ import annotations

import contextlib
import copy
import gc
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.levers.base import Receipt
from hotloop.levers.fused_optimizer import FusedOptimizer
from hotloop.levers.graphed_step import CudaRecorder
from hotloop.levers.microbatch import Microbatch
from hotloop.levers.step_graph import StepGraph
from hotloop.measurement import LoopSeen, Software
from hotloop.seams import Seams
from tests import builders
from tests.levers.test_microbatch import trained


@dataclass
class FakeRecorder:
    """Runs again what was recorded, and writes the loss where it was."""

    torch: Any
    waits_at: str = ""
    fails: str = ""
    recorded: list[int] = field(default_factory=list)

    def aside(self, work: Callable[[], Any]) -> Any:
        return work()

    def waits(self, work: Callable[[], Any]) -> tuple[Any, str]:
        return work(), self.waits_at

    def record(self, work: Callable[[], Any]) -> tuple[Callable[[], None], Any]:
        if self.fails:
            raise RuntimeError(self.fails)
        self.recorded.append(1)
        loss = self.torch.zeros(())

        def replay() -> None:
            loss.copy_(work().detach())

        return replay, loss


@dataclass
class FakeStepGraph(StepGraph):
    """With a recorder that needs no GPU."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.fake: Any = None

    def recorder(self, loop: Any) -> Any:
        self.fake = self.fake or FakeRecorder(self._torch)
        return self.fake


@pytest.fixture
def graph() -> FakeStepGraph:
    return FakeStepGraph()


def receipt_of(jobs: Any, job: Any, lever: StepGraph, **settings: Any) -> Receipt:
    trained(jobs, job, lever, **settings)
    return lever.receipt()


@pytest.mark.parametrize("kind", ["Plain", "Tokens"])
def test_trains_as_the_loop_does(kind: str, jobs: Any, owned: Any, graph: FakeStepGraph) -> None:
    job = getattr(owned, kind)
    plain = owned.weights(trained(jobs, job))
    planned = owned.weights(trained(jobs, job, graph))
    assert all(map(jobs.torch.equal, plain, planned))
    receipt = graph.receipt()
    assert receipt.applied
    assert receipt.evidence == {"replays": 8, "other_shapes": 2}  # of 14 steps, 4 to warm up
    assert graph.fake.recorded == [1]


def test_together_with_microbatches_clipping_and_a_scaler(
    jobs: Any, owned: Any, graph: FakeStepGraph
) -> None:
    settings = {"max_grad_norm": 0.5, "precision": "float16"}
    plain = owned.weights(trained(jobs, owned.Tokens, Microbatch(3), **settings))
    planned = owned.weights(trained(jobs, owned.Tokens, Microbatch(3), graph, **settings))
    assert graph.receipt().applied
    for one, other in zip(plain, planned, strict=True):
        jobs.torch.testing.assert_close(one, other)


def test_the_batch_is_copied_into_buffers_that_stay(
    jobs: Any, owned: Any, graph: FakeStepGraph
) -> None:
    seen: list[int] = []

    class Watched(owned.Plain):  # type: ignore[misc]
        def loss(self, model: Any, batch: Any) -> Any:
            seen.append(batch[0].data_ptr())
            return super().loss(model, batch)

    trained(jobs, Watched, graph, drop_last=True, epochs=3)
    assert len(set(seen[4:])) == 1


def test_a_schedule_goes_on_changing_the_rate(jobs: Any, owned: Any, graph: FakeStepGraph) -> None:
    class Scheduled(owned.Plain):  # type: ignore[misc]
        def optimizer(self, parameters: Any) -> Any:
            return jobs.torch.optim.AdamW(parameters, lr=0.05, foreach=False)

        def schedule(self, optimizer: Any) -> Any:
            return jobs.torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.7)

    class Uncaptured(FakeStepGraph):
        """On a CPU torch refuses capturable optimizers, so here they stay as they are."""

        def _prepare(self, loop: Any) -> str:
            said = super()._prepare(loop)
            for group in loop.optimizer.param_groups:
                assert group["capturable"] and isinstance(group["lr"], jobs.torch.Tensor)
                group["capturable"] = False
            return said

    lever = Uncaptured()
    found = trained(jobs, Scheduled, lever)
    plain = trained(jobs, Scheduled)
    rates = [float(one.optimizer.param_groups[0]["lr"]) for one in (found, plain)]
    assert rates[0] == pytest.approx(rates[1])
    found.optimizer.param_groups[0]["capturable"] = True  # as it is on a GPU
    (saved,), (own,) = (one.optimizer.state_dict()["param_groups"] for one in (found, plain))
    assert type(saved.pop("lr")) is type(own.pop("lr")) is float  # whatever the device holds
    assert saved == own
    for one, other in zip(owned.weights(found), owned.weights(plain), strict=True):
        jobs.torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("kind", "schedules", "precision", "reason"),
    [
        ("SGD", True, "float32", "the learning rate changes, which a captured SGD"),
        ("LBFGS", False, "float32", "the job's LBFGS cannot be captured"),
        ("NAdam", False, "float16", "the job's NAdam asks the GPU at every step"),
    ],
)
def test_what_cannot_be_captured_runs_as_it_is(
    kind: str,
    schedules: bool,
    precision: str,
    reason: str,
    jobs: Any,
    owned: Any,
    graph: FakeStepGraph,
) -> None:
    optim = jobs.torch.optim

    class Job(owned.Plain):  # type: ignore[misc]
        def optimizer(self, parameters: Any) -> Any:
            return getattr(optim, kind)(parameters, lr=0.01)

        def schedule(self, optimizer: Any) -> Any:
            return optim.lr_scheduler.StepLR(optimizer, 1) if schedules else None

        def loss(self, model: Any, batch: Any) -> Any:
            return super().loss(model, batch)

    from hotloop.runtime.owned.loop import Loop

    job = Job()
    job.precision = precision
    with jobs.under(graph):
        Loop(jobs.torch, job).begin()
    assert reason in graph.receipt().reason


def test_a_step_that_waits_is_refused_by_its_line(
    jobs: Any, owned: Any, graph: FakeStepGraph
) -> None:
    graph.fake = FakeRecorder(jobs.torch, waits_at="jobs.py:21")
    receipt = receipt_of(jobs, owned.Plain, graph)
    assert receipt.reason == "the step waits for the GPU, at jobs.py:21"
    assert graph.fake.recorded == []


def test_a_capture_that_fails_is_survived(jobs: Any, owned: Any, graph: FakeStepGraph) -> None:
    graph.fake = FakeRecorder(jobs.torch, fails="operation not permitted\nwhen capturing")
    plain = owned.weights(trained(jobs, owned.Plain))
    planned = owned.weights(trained(jobs, owned.Plain, graph))
    assert all(map(jobs.torch.equal, plain, planned))
    assert graph.receipt().reason == "the job's step cannot be captured: operation not permitted"


def test_shapes_that_change_all_the_time(jobs: Any, owned: Any, graph: FakeStepGraph) -> None:
    class Changing(owned.Plain):  # type: ignore[misc]
        batch_size = 4

        def data(self) -> Any:
            torch = jobs.torch
            sizes = [4, 4, 4, 4, 4, 3, 2, 1, 3, 2]
            return [(torch.ones(size, 4), torch.ones(size, 1)) for size in sizes]

    receipt = receipt_of(jobs, Changing, graph, epochs=1)
    assert receipt.reason == "most batches have another shape than the one captured"


def test_a_job_that_ends_before(jobs: Any, owned: Any, graph: FakeStepGraph) -> None:
    receipt = receipt_of(jobs, owned.Plain, graph, batch_size=25, epochs=1)
    assert receipt.reason == "no step was captured"


def test_without_a_gpu_nothing_is_captured(jobs: Any, owned: Any) -> None:
    assert receipt_of(jobs, owned.Plain, StepGraph(), device="cpu").reason == (
        "CUDA graphs need a GPU"
    )


def test_replayed_steps_are_told_and_recording_is_not(
    jobs: Any, owned: Any, graph: FakeStepGraph
) -> None:
    """As a probe would hear of them: one pass and one step each."""
    from hotloop.runtime.owned.loop import Loop

    told: list[str] = []

    def listener(name: str) -> Any:
        def tell(args: Any, result: Any, began: int) -> None:
            told.append(name)

        tell.__module__ = "hotloop.runtime.probes.fake"
        return tell

    with jobs.under(graph) as seams:
        loop = Loop(jobs.torch, owned.Plain())
        loop.begin()
        step: Any = loop.compute
        batch = next(iter(loop.feed))
        for _ in range(graph.warm_up):
            loop.step(batch)
        seams.backward.after.append(listener("pass"))
        seams.step.after.append(listener("step"))
        step._replay, step._loss = lambda: None, jobs.torch.ones(())  # of a real graph: no Python
        step._shape = shape_of(jobs, batch)
        step._buffers = batch
        loop.step(batch)
    assert told == ["pass", "step"]


def shape_of(jobs: Any, batch: Any) -> Any:
    from hotloop.levers.graphed_step import _shape

    return _shape(jobs.torch, batch)


def test_only_those_who_watch_are_left_out_of_a_recording() -> None:
    from hotloop.levers.autocasting import Autocasting
    from hotloop.runtime.probes.loss import LossProbe

    seams = Seams()
    watcher, changer = object.__new__(LossProbe), Autocasting("bfloat16")
    seams.model.before += [changer._open, watcher._keep]  # type: ignore[list-item]
    with seams.unwatched():
        assert seams.model.before == [changer._open]
    assert len(seams.model.before) == 2


def test_where_it_could_help(jobs: Any) -> None:
    on_gpu = replace(builders.measurement(), software=Software(device=builders.GPU))
    loop = LoopSeen(8, 8)
    assert StepGraph.expected(jobs.seen(measurement=on_gpu, loop=loop)).is_worth_trying
    assert "need a GPU" in StepGraph.expected(jobs.seen(loop=loop)).reason
    assert "loop of hotloop's own" in StepGraph.expected(jobs.seen(measurement=on_gpu)).reason
    assert "at least 1" in StepGraph(warm_up=0).problem()


def test_nothing_is_given_up_in_a_capture() -> None:
    """A graph that is no longer needed would be, whenever Python collects its garbage."""
    collecting: list[bool] = []
    cuda = SimpleNamespace(
        CUDAGraph=lambda: SimpleNamespace(replay=None), graph=lambda graph: contextlib.nullcontext()
    )
    CudaRecorder(SimpleNamespace(cuda=cuda)).record(lambda: collecting.append(gc.isenabled()))
    assert collecting == [False]
    assert gc.isenabled()


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("kind", "schedules", "precision"),
    [
        ("SGD", False, "float32"),
        ("AdamW", True, "float32"),
        ("AdamW", False, "bfloat16"),
        ("SGD", False, "float16"),
        ("AdamW", True, "float16"),
    ],
)
def test_on_a_gpu_the_same_weights(
    kind: str, schedules: bool, precision: str, jobs: Any, owned: Any
) -> None:
    torch = jobs.torch
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")

    class Job(owned.Plain):  # type: ignore[misc]
        epochs = 6
        max_grad_norm = 1.0

        def optimizer(self, parameters: Any) -> Any:
            return getattr(torch.optim, kind)(parameters, lr=0.01)

        def schedule(self, optimizer: Any) -> Any:
            steps = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.95)
            return steps if schedules else None

    settings = {"device": "cuda", "precision": precision}
    plain = owned.weights(trained(jobs, Job, **settings))
    lever = StepGraph()
    planned = owned.weights(trained(jobs, Job, lever, **settings))
    assert lever.receipt().applied, lever.receipt()
    for one, other in zip(plain, planned, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-2, atol=1e-3)


@pytest.mark.gpu
def test_on_a_gpu_a_fused_optimizer_is_captured(jobs: Any, owned: Any) -> None:
    torch = jobs.torch
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")

    class Job(owned.Plain):  # type: ignore[misc]
        epochs = 6

        def optimizer(self, parameters: Any) -> Any:
            return torch.optim.AdamW(parameters, lr=0.01)

    plain = owned.weights(trained(jobs, Job, device="cuda"))
    graph, fused = StepGraph(), FusedOptimizer()
    planned = owned.weights(trained(jobs, Job, fused, graph, device="cuda"))
    assert graph.receipt().applied, graph.receipt()
    assert fused.receipt().applied, fused.receipt()
    for one, other in zip(plain, planned, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


@pytest.mark.gpu
def test_on_a_gpu_a_step_that_waits_is_named(jobs: Any, owned: Any) -> None:
    if not jobs.torch.cuda.is_available():
        pytest.skip("there is no GPU")

    class Waits(owned.Plain):  # type: ignore[misc]
        def loss(self, model: Any, batch: Any) -> Any:
            loss = super().loss(model, batch)
            assert loss.item() >= 0
            return loss

    receipt = receipt_of(jobs, Waits, StepGraph(), device="cuda")
    assert "the step waits for the GPU, at" in receipt.reason


@pytest.mark.gpu
def test_on_a_gpu_it_goes_on_from_a_checkpoint_and_leaves_one(jobs: Any, owned: Any) -> None:
    torch = jobs.torch
    if not torch.cuda.is_available():
        pytest.skip("there is no GPU")
    checkpoints: list[Any] = []

    class Job(owned.Plain):  # type: ignore[misc]
        epochs = 6

        def optimizer(self, parameters: Any) -> Any:
            optimizer = torch.optim.AdamW(parameters, lr=0.01)
            if checkpoints:
                optimizer.load_state_dict(copy.deepcopy(checkpoints[0]))
            return optimizer

    checkpoints.append(trained(jobs, Job, device="cuda").optimizer.state_dict())
    plain = trained(jobs, Job, device="cuda")
    lever = StepGraph()
    planned = trained(jobs, Job, lever, device="cuda")
    assert lever.receipt().applied, lever.receipt()
    saved, own = (one.optimizer.state_dict() for one in (planned, plain))
    assert saved["param_groups"] == own["param_groups"]
    torch.testing.assert_close(saved["state"], own["state"], rtol=1e-2, atol=1e-3)
