from __future__ import annotations

import copy
import io
import sys
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.levers import graphs
from hotloop.levers.base import NO_MODEL, Receipt
from hotloop.levers.compile import ON_A_CPU, Compile, cuda_graphs
from hotloop.measurement import Software
from tests import builders


@pytest.fixture
def torch(fresh_torch: Any) -> Any:
    return fresh_torch


@pytest.fixture
def jobs(torch: Any) -> Any:
    from tests.runtime import jobs

    return jobs


@pytest.fixture
def known(torch: Any) -> Any:
    from tests.levers.jobs import seen

    return seen


@pytest.fixture
def quick(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs are captured as ever, and run as they are: without the seconds a compiler takes."""
    compile = torch.compile
    monkeypatch.setattr(torch, "compile", lambda call, mode: compile(call, backend="aot_eager"))


def sequential(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def losses(torch: Any, jobs: Any, make: Callable[[], Any], lever: Compile | None) -> list[float]:
    from tests.levers.jobs import under

    kept: list[float] = []

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        loss = jobs.plain_loss(model, x, y)
        kept.append(loss.item())
        return loss

    torch.manual_seed(0)
    with under(*([lever] if lever else [])):
        jobs.train(make(), loss_of=loss_of)
    return kept


def receipt(torch: Any, jobs: Any, model: Any, lever: Compile | None = None) -> Receipt:
    lever = lever or Compile()
    losses(torch, jobs, lambda: model, lever)
    return lever.receipt()


def test_it_compiles_for_real_and_trains_the_same(torch: Any, jobs: Any) -> None:
    lever = Compile()
    plain = losses(torch, jobs, jobs.Net, None)
    assert losses(torch, jobs, jobs.Net, lever) == pytest.approx(plain, rel=1e-4)
    assert lever.receipt() == Receipt(
        "compile", True, evidence={"graphs": 1, "graph_breaks": 0, "recompilations": 0}
    )


@pytest.mark.usefixtures("quick")
def test_a_sequential_is_captured_too(torch: Any, jobs: Any) -> None:
    """`nn.Sequential().compile()` captures nothing."""
    lever = Compile()
    plain = losses(torch, jobs, lambda: sequential(torch), None)
    compiled = losses(torch, jobs, lambda: sequential(torch), lever)
    assert compiled == pytest.approx(plain, rel=1e-4)
    assert lever.receipt().evidence["graphs"] == 1


@pytest.mark.usefixtures("quick")
def test_a_class_that_means_something_else_by_compile(torch: Any, jobs: Any) -> None:
    """Keras sets its optimizer and its loss so."""

    class Keras(jobs.Net):  # type: ignore[misc]
        def compile(self, optimizer: Any) -> None:
            raise AssertionError

    assert receipt(torch, jobs, Keras()).evidence["graphs"] == 1


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("kind", ["own class", "torch's class"])
def test_checkpoints_pickles_and_copies(kind: str, torch: Any, jobs: Any) -> None:
    model = jobs.Net() if kind == "own class" else sequential(torch)
    names = list(model.state_dict())
    assert receipt(torch, jobs, model).applied
    assert list(model.state_dict()) == names
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
def test_breaks_and_recompilations_are_counted(torch: Any, jobs: Any) -> None:
    class Broken(jobs.Net):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            x = self.body(x)
            torch._dynamo.graph_break()
            return self.head(x)

    assert receipt(torch, jobs, Broken()).evidence == {
        "graphs": 2,
        "graph_breaks": 1,
        "recompilations": 0,
    }
    from tests.levers.jobs import under

    lever, model = Compile(), jobs.Net()
    with under(lever):
        jobs.train(model)
        model.eval()
        with torch.no_grad():
            model(jobs.batch(11)[0])
    assert lever.receipt().evidence["recompilations"] == 1


@pytest.mark.usefixtures("quick")
def test_what_the_script_compiles_beside_it_is_not_counted(torch: Any, jobs: Any) -> None:
    criterion = torch.compile(torch.nn.functional.mse_loss, mode="default")

    from tests.levers.jobs import under

    lever = Compile()
    with under(lever):
        jobs.train(jobs.Net(), loss_of=lambda model, x, y: criterion(model(x), y))
    assert lever.receipt().evidence["graphs"] == 1


@pytest.mark.parametrize("kind", ["wrapped", "in place"])
def test_a_compiled_model_is_left_alone(kind: str, torch: Any, jobs: Any) -> None:
    model = jobs.Net()
    if kind == "wrapped":
        model = torch.compile(model, backend="eager")
    else:
        model.compile(backend="eager")
    found = receipt(torch, jobs, model)
    assert found == Receipt("compile", False, "the script already compiles its model")


def test_a_model_that_is_only_evaluated_is_not_compiled(torch: Any, jobs: Any) -> None:
    from tests.levers.jobs import under

    lever, model = Compile(), jobs.Net()
    with under(lever), torch.no_grad():
        model(jobs.batch()[0])
    assert lever.receipt() == Receipt(
        "compile", False, "no model was seen to be called in training"
    )


def test_what_captures_nothing_has_no_receipt(torch: Any, jobs: Any) -> None:
    class Hidden(jobs.Net):  # type: ignore[misc]
        @torch._dynamo.disable  # type: ignore[untyped-decorator]
        def forward(self, x: Any) -> Any:
            return self.head(self.body(x))

    found = receipt(torch, jobs, Hidden())
    assert found == Receipt("compile", False, "torch.compile captured no graph")


@pytest.mark.usefixtures("quick")
def test_torch_says_why_it_captures_nothing(torch: Any, jobs: Any) -> None:
    class Sparse(jobs.Net):  # type: ignore[misc]
        def forward(self, x: Any) -> Any:
            return torch.sparse.mm(x, self.weight)

        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(8, 1))

    from tests.levers.jobs import under

    lever, model = Compile(), Sparse()
    x = torch.eye(8).to_sparse()
    with under(lever):
        for _ in range(3):
            model(x).sum().backward()
    reason = lever.receipt().reason
    assert reason.startswith("torch.compile captured no graph: ") and "sparse" in reason
    assert "\n" not in reason and "Hint" not in reason


def test_an_error_of_the_compiler_ends_the_job(
    torch: Any, jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(graph: Any, inputs: Any) -> Any:
        raise ValueError("no compiler")

    compile = torch.compile
    monkeypatch.setattr(torch, "compile", lambda call, mode: compile(call, backend=failing))
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="no compiler"):
        receipt(torch, jobs, jobs.Net())


@pytest.mark.parametrize("mode", ["reduce-overhead", "max-autotune-no-cudagraphs"])
def test_modes_for_a_gpu(mode: str, torch: Any, jobs: Any) -> None:
    model = jobs.Net()
    found = receipt(torch, jobs, model, Compile(mode))
    assert found == Receipt("compile", False, ON_A_CPU[mode])
    assert model._compiled_call_impl is None


def node(*children: Any, recorded: bool = True) -> Any:
    return SimpleNamespace(
        graph=object() if recorded else None, children={0: list(children)} if children else {}
    )


def fake_graphs(monkeypatch: pytest.MonkeyPatch, *roots: Any) -> Any:
    """A torch whose CUDA graph trees hold these, and no GPU behind them."""
    manager = SimpleNamespace(roots={index: [root] for index, root in enumerate(roots)})
    trees = SimpleNamespace(get_manager=lambda index, create: manager if index == 0 else None)
    monkeypatch.setitem(sys.modules, "torch._inductor.cudagraph_trees", trees)
    counters = {"inductor": {"cudagraph_skips": 3}}
    return SimpleNamespace(
        cuda=SimpleNamespace(device_count=lambda: 2),
        _dynamo=SimpleNamespace(utils=SimpleNamespace(counters=counters)),
    )


def test_fake_cuda_graphs_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = fake_graphs(monkeypatch, node(node(), node(recorded=False)), node())
    assert cuda_graphs(torch) == 3
    monkeypatch.delitem(sys.modules, "torch._inductor.cudagraph_trees")
    assert cuda_graphs(torch) == 0


@pytest.mark.parametrize("recorded", [True, False])
def test_a_fake_gpu_must_have_recorded_a_graph(
    recorded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lever = Compile("reduce-overhead")
    lever._torch = fake_graphs(monkeypatch, node(recorded=recorded))
    lever._compiled, lever._graphs = [lambda: None], 1  # type: ignore[list-item]
    found = lever.receipt()
    assert found.applied is recorded
    if recorded:
        assert found.evidence["cuda_graphs"] == 1 and found.evidence["cuda_graph_skips"] == 3
    else:
        assert found.reason == "no CUDA graph was recorded, 3 were skipped"


def test_the_trees_of_this_torch_are_as_expected(torch: Any) -> None:
    """What is read of them on a GPU is there; without one they hold nothing."""
    trees = pytest.importorskip("torch._inductor.cudagraph_trees")
    assert trees.get_manager(0, False) is None
    assert cuda_graphs(torch) == 0


def test_fake_cuda_graphs_are_told_of_each_step() -> None:
    marks: list[None] = []
    compiler = SimpleNamespace(cudagraph_mark_step_begin=lambda: marks.append(None))
    lever = Compile("reduce-overhead")
    lever._torch = SimpleNamespace(compiler=compiler)
    lever._mark((), None, 0)
    assert not marks
    lever._compiled = [lambda: None]  # type: ignore[list-item]
    lever._mark((), None, 0)
    assert len(marks) == 1


def test_settings_and_what_it_could_win(known: Any) -> None:
    gpu = builders.measurement(software=Software(device=builders.GPU))
    assert Compile.settings(known()) == [{"mode": "default"}]
    busy = replace(known(measurement=gpu), gpu_idle=0.01)
    assert Compile.settings(busy) == [{"mode": "default"}]
    assert Compile.late_changes(busy) == [{"mode": "reduce-overhead"}]
    assert Compile.late_changes(known(measurement=gpu)) == Compile.late_changes(known()) == []
    assert [s["mode"] for s in Compile.settings(known(measurement=gpu))] == [
        "default",
        "reduce-overhead",
    ]
    assert 0 < Compile.expected(known()).share < 0.65
    compiled = known(models=[builders.model(compiled=True)])
    assert Compile.expected(compiled).reason == "the script already compiles its model"
    assert Compile.expected(known(models=[])).reason == NO_MODEL


def test_what_takes_minutes_is_asked_for(known: Any) -> None:
    gpu = builders.measurement(software=Software(device=builders.GPU))
    assert Compile.dear_settings(known()) == [{"mode": "default", "dynamic": True}]
    dear = Compile.dear_settings(known(measurement=gpu))
    assert dear == [{"mode": "max-autotune-no-cudagraphs"}, {"mode": "default", "dynamic": True}]
    assert not any(Compile(**setting).problem() for setting in dear)
    assert all(setting not in dear for setting in Compile.settings(known()))


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("watched", [False, True])
def test_for_all_sizes_at_once(
    watched: bool, dynamic: bool, torch: Any, jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a batch of another size compiles once more."""
    from tests.levers.jobs import under

    compile, eager = torch.compile, torch._dynamo.lookup_backend("eager")
    monkeypatch.setattr(graphs, "inductor", lambda torch, mode: eager)

    def quick(call: Any, mode: str | None = None, **how: Any) -> Any:
        return compile(call, **({"backend": "eager"} | how))

    monkeypatch.setattr(torch, "compile", quick)
    lever, model = Compile(dynamic=dynamic), jobs.Net()
    with under(lever) as seams:
        if watched:
            seams.captured.before.append(lambda args, kwargs: None)
        jobs.train(model)
        jobs.plain_loss(model, *jobs.batch(17)).backward()
    assert lever.receipt().evidence["recompilations"] == (not dynamic)


def test_fake_tuning_is_counted() -> None:
    lever = Compile("max-autotune-no-cudagraphs")
    counters = {"inductor": {"select_algorithm_autotune": 4}}
    dynamo = SimpleNamespace(utils=SimpleNamespace(counters=counters))
    lever._torch = SimpleNamespace(_dynamo=dynamo)
    lever._compiled, lever._graphs = [lambda: None], 1  # type: ignore[list-item]
    assert lever.receipt().evidence["tuned"] == 4


@pytest.mark.gpu
def test_products_are_really_tuned(torch: Any, jobs: Any) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    lever = Compile("max-autotune-no-cudagraphs")
    model = torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.ReLU()).cuda()
    x = torch.randn(512, 256, device="cuda")
    from tests.levers.jobs import under

    with under(lever), torch._inductor.config.patch(force_disable_caches=True):
        jobs.train(model, loss_of=lambda model, _x, _y: model(x).square().mean())
    assert lever.receipt().evidence["tuned"]


def test_a_mode_that_does_not_exist() -> None:
    assert not Compile().problem() and not Compile("reduce-overhead").problem()
    assert "'fast'" in Compile("fast").problem()
