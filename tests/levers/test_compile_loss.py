from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from hotloop.inspection import Inspection, LossSeen, Operators
from hotloop.levers import graphs
from hotloop.levers.base import Receipt
from hotloop.levers.compile import Compile
from hotloop.levers.compile_loss import CompileLoss
from hotloop.levers.fused_attention import FusedAttention


@pytest.fixture(autouse=True)
def torch(fresh_torch: Any) -> Any:
    return fresh_torch


@pytest.fixture
def jobs(torch: Any) -> Any:
    from tests.runtime import jobs

    return jobs


@pytest.fixture
def quick(torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs are captured, differentiated and taken apart as ever; then they run as they are."""
    eager = torch._dynamo.lookup_backend("aot_eager_decomp_partition")
    monkeypatch.setattr(graphs, "inductor", lambda torch, mode: eager)


def classes(torch: Any, count: int = 6, kinds: int = 5, dtype: str = "float32") -> tuple[Any, Any]:
    logits = torch.randn(count, kinds, dtype=getattr(torch, dtype), requires_grad=True)
    return logits, torch.randint(kinds, (count,))


class Compared:
    """One lever at work, and the same function as torch computes it."""

    def __init__(self, torch: Any, lever: CompileLoss) -> None:
        self._torch, self._lever = torch, lever
        lever._trained = True  # a model was called

    def __call__(self, name: str, x: Any, *args: Any, **kwargs: Any) -> float:
        """How far loss and gradient are apart, in units of one rounding."""
        plain = getattr(self._torch.nn.functional, name).__wrapped__
        got, wanted = (self._of(call, x, args, kwargs) for call in (self._patched(name), plain))
        assert [one.dtype for one in got] == [one.dtype for one in wanted]
        assert [one.shape for one in got] == [one.shape for one in wanted]
        return max(map(self._roundings, got, wanted))

    def _roundings(self, got: Any, wanted: Any) -> float:
        """Not a number is equal to not a number."""
        one, other = got.double().nan_to_num(1e9), wanted.double().nan_to_num(1e9)
        largest = max([1.0, *other.abs().flatten().tolist()])
        apart = max([0.0, *(one - other).abs().flatten().tolist()])
        return float(apart / largest / self._torch.finfo(got.dtype).eps)

    def _patched(self, name: str) -> Any:
        return getattr(self._torch.nn.functional, name)

    def _of(self, call: Any, x: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
        x.grad = None
        loss = call(x, *args, **kwargs)
        loss.sum().backward()
        return loss.detach(), x.grad.clone()


@pytest.fixture
def lever() -> CompileLoss:
    return CompileLoss()


@pytest.fixture
def apart(torch: Any, lever: CompileLoss) -> Iterator[Compared]:
    from tests.levers.jobs import under

    with under(lever):
        yield Compared(torch, lever)


REDUCTIONS = ("mean", "sum", "none")
FORMATS = ("float32", "float64", "bfloat16", "float16")
SHAPES = ((6, 5), (1, 2), (7, 1), (2, 5, 4), (2, 5, 3, 4), (0, 5), (5,))
"""Classes in the second dimension, and further ones after it; one sample without a batch."""


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("shape", "dtype"),
    [*zip(SHAPES, itertools.cycle(FORMATS), strict=False), *((SHAPES[0], d) for d in FORMATS[1:])],
    ids=str,
)
def test_cross_entropy_is_the_same_however_it_is_asked_for(
    shape: tuple[int, ...], dtype: str, torch: Any, apart: Compared
) -> None:
    draw = random.Random(f"{shape} {dtype}")
    kinds = shape[1] if len(shape) > 1 else shape[0]
    x = torch.randn(shape, dtype=getattr(torch, dtype), requires_grad=True)
    for _ in range(2):
        is_number = draw.random() < 0.8
        y = torch.randint(kinds, (shape[0], *shape[2:]) if len(shape) > 1 else ())
        far = apart(
            "cross_entropy",
            x,
            y if is_number else torch.rand(shape).to(x.dtype),
            weight=draw.choice((None, torch.rand(kinds, dtype=x.dtype))),
            ignore_index=draw.choice((-100, 0)) if is_number else -100,
            reduction=draw.choice(REDUCTIONS),
            label_smoothing=draw.choice((0.0, 0.1)),
        )
        assert far < 8


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("name", "reduction", "options"),
    [
        ("nll_loss", "none", {"ignore_index": 1}),
        ("mse_loss", "mean", {}),
        ("l1_loss", "sum", {}),
        ("smooth_l1_loss", "none", {"beta": 0.5}),
        ("huber_loss", "mean", {"delta": 0.5}),
        ("binary_cross_entropy", "sum", {}),
        ("binary_cross_entropy_with_logits", "mean", {"pos_weight": True}),
        ("kl_div", "batchmean", {"log_target": True}),
    ],
)
def test_the_other_losses(
    name: str, reduction: str, options: dict[str, Any], torch: Any, apart: Compared
) -> None:
    x, y = classes(torch)
    if name == "binary_cross_entropy":
        x = torch.rand(6, 5, requires_grad=True)
    if name != "nll_loss":
        y = torch.rand(6, 5)
    if "pos_weight" in options:
        options = {"pos_weight": torch.rand(5)}
    assert apart(name, x, y, reduction=reduction, **options) < 8


@pytest.mark.usefixtures("quick")
def test_where_everything_is_ignored_it_is_not_a_number_either(torch: Any, apart: Compared) -> None:
    x, y = classes(torch)
    y.fill_(-100)
    loss = torch.nn.functional.cross_entropy(x, y)
    assert loss.isnan()
    loss.backward()
    plain = torch.nn.functional.cross_entropy.__wrapped__
    assert torch.equal(x.grad.isnan(), torch.autograd.grad(plain(x, y), x)[0].isnan())


def test_for_real_under_autocast(torch: Any, apart: Compared, lever: CompileLoss) -> None:
    """Autocast computes it in float32; the gradient comes back in the format of the logits."""
    x, y = classes(torch, 64, 33, "bfloat16")
    with torch.autocast("cpu", torch.bfloat16):
        assert apart("cross_entropy", x, y, label_smoothing=0.1, ignore_index=3) < 2
    evidence: dict[str, int | str] = {"functions": "cross_entropy", "graphs": 1, "runs": 1}
    assert lever.receipt().evidence == {**evidence, "uncompiled": 0}


@pytest.mark.usefixtures("quick")
def test_an_autocast_that_ends_is_seen(torch: Any, apart: Compared, lever: CompileLoss) -> None:
    x, y = classes(torch, dtype="bfloat16")
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.nn.functional.cross_entropy(x, y).dtype is torch.float32
    assert torch.nn.functional.cross_entropy(x, y).dtype is torch.bfloat16
    assert lever.receipt().evidence["graphs"] == 2


@pytest.mark.usefixtures("quick")
def test_a_short_batch_compiles_once_more_and_then_any_size_fits(
    torch: Any, apart: Compared, lever: CompileLoss
) -> None:
    for count in (32, 32, 17, 9, 32, 5, 64):
        assert apart("cross_entropy", *classes(torch, count)) < 8
    assert lever.receipt().evidence["graphs"] == 2
    assert lever.receipt().evidence["uncompiled"] == 0


@pytest.mark.usefixtures("quick")
def test_what_torch_gives_up_compiling_is_counted(
    torch: Any, lever: CompileLoss, apart: Compared
) -> None:
    x, y = classes(torch)
    with torch._dynamo.config.patch(recompile_limit=2):
        for reduction in ("mean", "sum", "none", "mean", "none"):
            torch.nn.functional.cross_entropy(x, y, reduction=reduction)
    evidence = lever.receipt().evidence
    assert (evidence["graphs"], evidence["runs"], evidence["uncompiled"]) == (2, 3, 2)


@pytest.mark.usefixtures("quick")
def test_each_function_is_compiled_by_itself(torch: Any, apart: Compared, lever: Any) -> None:
    x, y = classes(torch)
    torch.nn.functional.cross_entropy(x, y)
    torch.nn.functional.mse_loss(x, torch.rand(6, 5))
    assert lever.receipt().evidence["functions"] == "cross_entropy, mse_loss"
    codes = {call._torchdynamo_orig_callable.__code__ for call in lever._compiled.values()}
    assert len(codes) == 2


def train(torch: Any, jobs: Any, how: Callable[..., Any], *levers: Any) -> list[float]:
    from tests.levers.jobs import under

    kept: list[float] = []

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        loss = how(model, x, y)
        kept.append(loss.item())
        return loss

    torch.manual_seed(0)
    with under(*levers):
        jobs.train(jobs.Net(), loss_of=loss_of)
    return kept


class Watching(FusedAttention):
    """Looks at the model's graphs: they then go the quick way too."""

    def _rewrite(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None: ...


def by_function(torch: Any) -> Callable[..., Any]:
    return lambda model, x, y: torch.nn.functional.mse_loss(model(x), y)


def by_criterion(torch: Any) -> Callable[..., Any]:
    criterion = torch.nn.SmoothL1Loss()
    return lambda model, x, y: criterion(model(x), y)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("how", [by_function, by_criterion])
def test_a_job_trains_the_same(how: Any, torch: Any, jobs: Any, lever: CompileLoss) -> None:
    plain = train(torch, jobs, how(torch))
    assert train(torch, jobs, how(torch), lever) == pytest.approx(plain, rel=1e-5)
    # Before the first backward pass no model is known.
    assert lever.receipt().evidence["runs"] == jobs.STEPS - 1


@pytest.mark.usefixtures("quick")
def test_beside_a_compiled_model(torch: Any, jobs: Any, lever: CompileLoss) -> None:
    plain = train(torch, jobs, by_function(torch))
    torch._dynamo.reset()
    model = Compile()
    assert train(torch, jobs, by_function(torch), model, lever, Watching()) == pytest.approx(
        plain, rel=1e-5
    )
    assert model.receipt().evidence["graphs"] == 1
    assert lever.receipt().evidence["graphs"] == 1


@pytest.mark.usefixtures("quick")
def test_a_loss_inside_the_model_is_the_models(torch: Any, jobs: Any, lever: CompileLoss) -> None:
    from tests.levers.jobs import under

    with under(lever):
        jobs.train(jobs.Task(jobs.Net()), loss_of=lambda model, x, y: model(x, y))
    why = "the model computes its loss itself"
    assert lever.receipt() == Receipt("compile_loss", False, why)


@pytest.mark.usefixtures("quick")
def test_a_loss_by_hand_is_none_of_torchs(torch: Any, jobs: Any, lever: CompileLoss) -> None:
    train(torch, jobs, jobs.plain_loss, lever)
    why = "no loss function of torch's was called on what a model returned"
    assert lever.receipt() == Receipt("compile_loss", False, why)


def penalised(torch: Any) -> Callable[..., Any]:
    def loss_of(model: Any, x: Any, y: Any) -> Any:
        loss = torch.nn.functional.mse_loss(model(x), y)
        slope = torch.autograd.grad(loss, list(model.parameters()), create_graph=True)
        return loss + sum(one.square().sum() for one in slope)

    return loss_of


def looked_at(torch: Any) -> Callable[..., Any]:
    def loss_of(model: Any, x: Any, y: Any) -> Any:
        loss = torch.nn.functional.mse_loss(model(x), y)
        loss.backward(retain_graph=True)
        model.zero_grad()
        return loss

    return loss_of


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("how", [penalised, looked_at])
def test_what_is_differentiated_again_is_left_alone(
    how: Any, torch: Any, jobs: Any, lever: CompileLoss
) -> None:
    plain = train(torch, jobs, how(torch))
    assert train(torch, jobs, how(torch), lever) == plain
    why = "the script differentiates again, which compiled code may refuse"
    assert lever.receipt() == Receipt("compile_loss", False, why)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("how", ["no_grad", "data alone", "transformed", "subclass"])
def test_nothing_else_is_compiled(how: str, torch: Any, apart: Compared, lever: Any) -> None:
    functional = torch.nn.functional
    x, y = classes(torch)
    if how == "no_grad":
        with torch.no_grad():
            functional.cross_entropy(x, y)
    elif how == "data alone":
        functional.cross_entropy(x.detach(), y)
    elif how == "transformed":
        slope = torch.func.grad(lambda x: functional.cross_entropy(x, y))(x)
        assert torch.allclose(slope, torch.autograd.grad(functional.cross_entropy(x, y), x)[0])
        assert lever._calls == 1  # the second
        return
    else:
        own = type("Own", (torch.Tensor,), {})
        functional.cross_entropy(x.as_subclass(own), y)
        assert "of a kind of their own" in lever.receipt().reason
    assert lever._calls == 0 and not lever._compiled


@pytest.mark.usefixtures("quick")
def test_what_captures_nothing_has_no_receipt(
    torch: Any, lever: CompileLoss, apart: Compared
) -> None:
    with torch._dynamo.config.patch(disable=True):
        torch.nn.functional.cross_entropy(*classes(torch))
    assert lever.receipt().reason == "torch.compile captured no graph"


@pytest.mark.gpu
@pytest.mark.parametrize("mode", [None, "default", "reduce-overhead"])
def test_on_a_gpu_beside_a_compiled_model(mode: str | None, torch: Any, jobs: Any) -> None:
    """In bfloat16, with a vocabulary, and in a script that holds on to its losses."""
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    functional = torch.nn.functional
    model = torch.nn.Sequential(torch.nn.Embedding(512, 64), torch.nn.Linear(64, 20_000)).cuda()
    x = torch.randint(512, (4096,), device="cuda")
    y = torch.randint(20_000, (4096,), device="cuda")

    def train(*levers: Any) -> tuple[list[float], int]:
        from tests.levers.jobs import under

        learner, kept = copy.deepcopy(model), []
        optimizer = torch.optim.SGD(learner.parameters(), lr=0.1)
        with under(*levers):
            for _ in range(8):
                torch.cuda.reset_peak_memory_stats()
                with torch.autocast("cuda", torch.bfloat16):
                    loss = functional.cross_entropy(learner(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                kept.append(loss)
        return [loss.item() for loss in kept], torch.cuda.max_memory_allocated()

    whole = [Compile(mode)] if mode else []
    plain, before = train()
    lever = CompileLoss()
    losses, after = train(*whole, lever)
    assert losses == pytest.approx(plain, rel=1e-2)
    assert lever.receipt().evidence["runs"] == 7
    assert all(one.receipt().applied for one in whole)
    if not mode:
        assert after < before


def looked(torch: Any, *losses: LossSeen, moved: float = 1e9) -> Any:
    from tests.levers.jobs import seen

    operators = Operators(steps=2, bytes=moved)
    return replace(seen(), inspection=Inspection(operators=operators, losses=list(losses)))


def test_what_it_could_win(torch: Any) -> None:
    from tests.levers.jobs import seen

    many = LossSeen("cross_entropy", False, 2, 10_000_000, 2)
    expected = CompileLoss.expected(looked(torch, many))
    passes = seen().share("forward", "backward")
    assert expected.share == pytest.approx(passes * 10_000_000 * (28 + 12 - 6) / 1e9)
    few = replace(many, elements=1000)
    assert CompileLoss.expected(looked(torch, few)).share < 0.001
    wide = replace(many, itemsize=8)
    assert CompileLoss.expected(looked(torch, wide)).share < passes
    assert CompileLoss.expected(looked(torch, many, moved=1.0)).share == passes
    picked = replace(many, function="nll_loss", itemsize=4)
    assert CompileLoss.expected(looked(torch, picked)).share == 0


def test_reasons_not_to(torch: Any) -> None:
    from tests.levers.jobs import seen

    reason = CompileLoss.expected(seen()).reason
    assert reason == "the job's loss is not known: no run looked for what limits the job"
    assert CompileLoss.expected(looked(torch)).reason == "no loss function of torch's was seen"
    inside = LossSeen("cross_entropy", True, 2, 10_000_000, 2)
    reason = CompileLoss.expected(looked(torch, inside)).reason
    assert reason == "the model computes its loss itself, and is compiled with it"
