from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.levers import bf16
from hotloop.levers.base import Receipt
from hotloop.levers.bf16 import Bf16
from hotloop.measurement import Precision, Software
from hotloop.seams import Seams
from tests import builders


@pytest.fixture
def torch() -> Iterator[Any]:
    """Without oneDNN: in a virtual machine that lists AMX but does not let it run, its products in
    bfloat16 end the process by an illegal instruction."""
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    with torch.backends.mkldnn.flags(enabled=False):
        yield torch


@pytest.fixture
def jobs(torch: Any) -> Any:
    from tests.runtime import jobs

    return jobs


@pytest.fixture
def known(torch: Any) -> Any:
    from tests.levers.jobs import seen

    return seen


def trained(torch: Any, job: Callable[[], Any], lever: Bf16 | None = None) -> Receipt | None:
    """The receipt, after a job that ran under the lever, from a fixed seed."""
    torch.manual_seed(0)
    from tests.levers.jobs import under

    with under(*([lever] if lever else [])):
        job()
    assert not torch.is_autocast_enabled("cpu")
    return lever.receipt() if lever else None


def losses(torch: Any, jobs: Any, lever: Bf16 | None) -> list[float]:
    kept: list[float] = []

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        loss = jobs.plain_loss(model, x, y)
        kept.append(loss.item())
        return loss

    trained(torch, lambda: jobs.train(jobs.Net(64), loss_of=loss_of), lever)
    return kept


def test_a_job_without_autocast_is_trained_in_bf16(torch: Any, jobs: Any) -> None:
    outputs: list[Any] = []

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        outputs.append(model(x).dtype)
        return torch.nn.functional.mse_loss(model(x), y)

    receipt = trained(torch, lambda: jobs.train(jobs.Net(), loss_of=loss_of), Bf16())
    assert receipt is not None and receipt.applied
    assert receipt.evidence["products_in_bf16"] == receipt.evidence["products"] == 2
    assert not receipt.evidence["own_autocast"]
    assert outputs == [torch.float32] + [torch.bfloat16] * (jobs.STEPS - 1)  # the first finds it


def test_numpy_is_given_what_it_knows(
    torch: Any, jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    numpy = pytest.importorskip("numpy")
    monkeypatch.setattr(torch.Tensor, "numpy", torch.Tensor.numpy)  # put back afterwards
    kept: list[Any] = []

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        output = model(x)
        kept.append((output.dtype, output.detach().numpy(), numpy.asarray(output.detach())))
        with pytest.raises(RuntimeError, match="requires grad"):
            output.numpy()  # a mistake stays one
        return torch.nn.functional.mse_loss(output, y)

    for _ in range(2):  # the second lever finds it done
        trained(torch, lambda: jobs.train(jobs.Net(), loss_of=loss_of), Bf16())
    formats = {(str(dtype), one.dtype.name, other.dtype.name) for dtype, one, other in kept}
    assert formats == {
        ("torch.float32", "float32", "float32"),
        ("torch.bfloat16", "float32", "float32"),
    }
    assert torch.tensor([1.5]).numpy().tolist() == [1.5]


def test_losses_stay_close_and_do_change(torch: Any, jobs: Any) -> None:
    plain, lower = losses(torch, jobs, None), losses(torch, jobs, Bf16())
    assert plain != lower
    assert lower == pytest.approx(plain, rel=0.05, abs=0.02)


def test_weights_and_their_gradients_stay_float32(torch: Any, jobs: Any) -> None:
    model = jobs.Net()
    trained(torch, lambda: jobs.train(model), Bf16())
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert {p.grad.dtype for p in model.parameters()} == {torch.float32}


def test_the_loss_is_inside_and_the_backward_pass_is_not(torch: Any, jobs: Any) -> None:
    seen: list[tuple[str, bool]] = []

    def note(where: str) -> None:
        seen.append((where, torch.is_autocast_enabled("cpu")))

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        loss = jobs.plain_loss(model, x, y)
        note("loss")
        loss.register_hook(lambda grad: note("backward"))
        return loss

    trained(torch, lambda: jobs.train(jobs.Net(), loss_of=loss_of), Bf16())
    assert set(seen[2:]) == {("loss", True), ("backward", False)}


def test_passes_without_gradients_are_left_alone(torch: Any, jobs: Any) -> None:
    """Even between a training call and its loss, as with a target network."""
    target, outputs, after = jobs.Net(), [], []

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        output = model(x)
        with torch.no_grad():
            outputs.append(target(x).dtype)
        after.append(torch.is_autocast_enabled("cpu"))
        return (output - y).square().mean()

    receipt = trained(torch, lambda: jobs.train(jobs.Net(), loss_of=loss_of), Bf16())
    assert receipt is not None and receipt.applied
    # The target is a root too, found with the model.
    assert set(outputs) == {torch.float32}
    assert after == [False] + [True] * (jobs.STEPS - 1)


def test_a_model_whose_loss_is_never_differentiated_does_not_leave_it_open(
    torch: Any, jobs: Any
) -> None:
    model, other = jobs.Net(), jobs.Net()

    def job() -> None:
        optimizer = jobs.sgd(model)
        for _ in range(jobs.STEPS):
            jobs.plain_loss(model, *jobs.batch()).backward()
            other(jobs.batch()[0])
            optimizer.step()
            assert not torch.is_autocast_enabled("cpu")

    trained(torch, job, Bf16())


def test_gradients_by_autograd_grad(torch: Any, jobs: Any) -> None:
    model = jobs.Net()

    def job() -> None:
        jobs.train(model, steps=1)
        optimizer = jobs.sgd(model)
        for _ in range(3):
            weights = list(model.parameters())
            loss = jobs.plain_loss(model, *jobs.batch())
            for weight, grad in zip(weights, torch.autograd.grad(loss, weights), strict=True):
                assert not torch.is_autocast_enabled("cpu")
                weight.grad = grad
            optimizer.step()

    receipt = trained(torch, job, Bf16())
    assert receipt is not None and receipt.applied


@pytest.mark.parametrize("reentrant", [True, False])
def test_what_is_computed_again_on_the_way_back_is_no_autocast_of_the_author(
    reentrant: bool, torch: Any, jobs: Any
) -> None:
    """torch opens one there, to compute it as it was."""
    checkpoint = __import__("torch.utils.checkpoint").utils.checkpoint.checkpoint

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        hidden = checkpoint(model.body, x.requires_grad_(), use_reentrant=reentrant)
        return (model.head(hidden) - y).square().mean()

    class Whole(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.inner = jobs.Net(64)

        def forward(self, x: Any, y: Any) -> Any:
            return loss_of(self.inner, x, y)

    def job() -> None:
        jobs.train(Whole(), steps=5, loss_of=lambda model, x, y: model(x, y))

    receipt = trained(torch, job, Bf16())
    assert receipt is not None and receipt.applied
    assert receipt.evidence["passes"] in (4, 5) and not receipt.evidence["own_autocast"]


def test_what_is_lost_after_the_first_passes_has_no_receipt(torch: Any, jobs: Any) -> None:
    lever = Bf16()

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        loss = jobs.plain_loss(model, x, y)
        if lever._cast.passes:  # as if the script had turned out to have its own
            lever._cast.has_own = True
        return loss

    receipt = trained(torch, lambda: jobs.train(jobs.Net(), steps=9, loss_of=loss_of), lever)
    assert receipt is not None and not receipt.applied
    assert receipt.reason == "only 1 of 8 passes were computed in bfloat16"


def test_a_pass_that_is_differentiated_many_times_counts_once(torch: Any, jobs: Any) -> None:
    def loss_of(model: Any, x: Any, y: Any) -> Any:
        loss = jobs.plain_loss(model, x.requires_grad_(), y)
        for _ in range(6):
            torch.autograd.grad(loss, x, retain_graph=True)
        return loss

    receipt = trained(torch, lambda: jobs.train(jobs.Net(), steps=9, loss_of=loss_of), Bf16())
    assert receipt is not None and receipt.applied, receipt


def test_an_author_who_says_float32_is_steered(torch: Any, jobs: Any) -> None:
    """On a GPU `autocast(dtype=float32)` is switched on; on a CPU torch switches it off, so it is
    switched on here by hand."""
    context = torch.autocast("cpu", dtype=torch.bfloat16)
    context.fast_dtype = torch.float32
    inside: list[Any] = []

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        with context:
            inside.append(torch.get_autocast_dtype("cpu"))
            with torch.autocast("cpu", enabled=False):
                assert not torch.is_autocast_enabled("cpu")  # an island stays one
            return (model(x) - y).square().mean()

    def job() -> None:
        jobs.train(jobs.Net(), loss_of=loss_of)
        with torch.no_grad(), context:  # the same object, to evaluate
            assert torch.get_autocast_dtype("cpu") is torch.float32

    receipt = trained(torch, job, Bf16())
    assert receipt is not None and receipt.applied
    assert receipt.evidence["own_autocast"]
    assert inside == [torch.bfloat16] * jobs.STEPS
    assert context.fast_dtype is torch.float32


def test_nested_contexts_are_their_authors(torch: Any) -> None:
    lever = Bf16()

    def job() -> None:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inner = torch.autocast("cpu", dtype=torch.bfloat16)
            inner.fast_dtype = torch.float32
            with inner:
                assert torch.get_autocast_dtype("cpu") is torch.float32

    trained(torch, job, lever)


@pytest.mark.parametrize("found", ["bfloat16", "float16"])
def test_an_author_who_chose_a_lower_format_keeps_it(found: str, torch: Any, jobs: Any) -> None:
    def loss_of(model: Any, x: Any, y: Any) -> Any:
        with torch.autocast("cpu", dtype=getattr(torch, found)):
            output = model(x)
        assert output.dtype is getattr(torch, found)
        return (output.float() - y).square().mean()

    receipt = trained(torch, lambda: jobs.train(jobs.Net(), loss_of=loss_of), Bf16())
    assert receipt == Receipt("bf16", False, f"the script already computes in {found}")


def test_a_model_in_bf16_is_left_alone(torch: Any, jobs: Any) -> None:
    def loss_of(model: Any, x: Any, y: Any) -> Any:
        return (model(x.bfloat16()) - y).square().mean()

    model = jobs.Net().bfloat16()
    receipt = trained(torch, lambda: jobs.train(model, loss_of=loss_of), Bf16())
    assert receipt == Receipt("bf16", False, "the script already computes in bfloat16")


def test_an_autocast_switched_off_by_a_flag_counts_as_none(torch: Any, jobs: Any) -> None:
    def loss_of(model: Any, x: Any, y: Any) -> Any:
        with torch.autocast("cpu", enabled=False):
            output = model(x)
        return (output - y).square().mean()

    receipt = trained(torch, lambda: jobs.train(jobs.Net(), loss_of=loss_of), Bf16())
    assert receipt is not None and receipt.applied


def test_a_compiled_model_and_loss_under_it(torch: Any, jobs: Any) -> None:
    """While it compiles, torch itself calls autograd.grad: that is not the end of the loss."""
    torch._dynamo.reset()
    model = jobs.Net()
    model.compile(backend="aot_eager")
    criterion = torch.compile(torch.nn.functional.mse_loss, backend="aot_eager")

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        output = model(x)
        inside.append(torch.is_autocast_enabled("cpu"))
        loss = criterion(output, y)
        inside.append(torch.is_autocast_enabled("cpu"))
        return loss

    inside: list[bool] = []
    receipt = trained(torch, lambda: jobs.train(model, loss_of=loss_of), Bf16())
    assert inside == [False] * 2 + [True] * 2 * (jobs.STEPS - 1)
    assert receipt is not None and receipt.applied
    torch._dynamo.reset()


COMPILED = """
import sys, torch
from hotloop.levers.autocasting import Autocasting
from hotloop.seams import Seams

torch.backends.mkldnn.enabled = False
ours, authors = sys.argv[1:]
if ours:
    Autocasting(ours).attach(torch, Seams())
model = torch.compile(torch.nn.Linear(4, 4))
with torch.autocast("cpu", dtype=getattr(torch, authors)):
    made = model(torch.ones(2, 4))
made.float().sum().backward()
print(made.dtype)
"""


@pytest.mark.e2e
def test_compiled_code_of_another_format_is_not_taken(tmp_path: Path) -> None:
    """By a job whose own autocast has another, in a process that shares what is kept."""
    kept = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(tmp_path)}

    def made(ours: str, authors: str) -> str:
        argv = [sys.executable, "-c", COMPILED, ours, authors]
        return subprocess.check_output(argv, text=True, env=kept).strip()

    assert made("bfloat16", "bfloat16") == "torch.bfloat16"
    assert made("", "float16") == "torch.float16"


def test_without_products_there_is_no_receipt(torch: Any, jobs: Any) -> None:
    model = torch.nn.LayerNorm(4)
    receipt = trained(torch, lambda: jobs.train(model), Bf16())
    assert receipt == Receipt("bf16", False, "no matrix product was computed in bfloat16")


def test_without_training_there_is_no_receipt(torch: Any) -> None:
    receipt = trained(torch, lambda: None, Bf16())
    assert receipt == Receipt("bf16", False, "no model was trained under it")


def test_an_error_of_the_loss_reaches_the_script(torch: Any, jobs: Any) -> None:
    def loss_of(model: Any, x: Any, y: Any) -> Any:
        output = model(x)
        if output.dtype is torch.bfloat16:
            raise RuntimeError("unsafe to autocast")  # as BCELoss does on a GPU
        return (output - y).square().mean()

    with pytest.raises(RuntimeError, match="unsafe to autocast"):
        try:
            trained(torch, lambda: jobs.train(jobs.Net(), loss_of=loss_of), Bf16())
        finally:
            torch.set_autocast_enabled("cpu", False)
            torch.autocast_decrement_nesting()


def test_a_fake_gpu_without_bf16_is_named() -> None:
    lever, seams = Bf16(), Seams()
    cuda = SimpleNamespace(is_bf16_supported=lambda including_emulation: False)
    weight = SimpleNamespace(device=SimpleNamespace(type="cuda"), dtype="torch.float32")
    fake_torch = SimpleNamespace(
        bfloat16="torch.bfloat16",
        compiler=SimpleNamespace(),
        cuda=cuda,
        is_grad_enabled=lambda: True,
        is_autocast_enabled=lambda device: False,
        Tensor=SimpleNamespace(numpy=lambda tensor: None),
    )
    lever.apply(fake_torch, seams)
    for tell in seams.model.before:
        tell((SimpleNamespace(parameters=lambda: iter([weight])),), {})
    assert lever.receipt() == Receipt("bf16", False, "this GPU has no bfloat16")


def test_a_gpu_that_was_seen_to_have_none_is_not_tried(known: Any) -> None:
    gpu = builders.measurement(software=Software(device=builders.GPU, bfloat16=False))
    assert Bf16.expected(known(measurement=gpu)).reason == "this GPU has no bfloat16"


def test_a_cpu_must_have_the_instructions(monkeypatch: pytest.MonkeyPatch, known: Any) -> None:
    monkeypatch.setattr(bf16, "cpu_flags", lambda: frozenset({"avx2"}))
    assert Bf16.expected(known()).reason == "bfloat16 on this CPU is emulated"
    monkeypatch.setattr(bf16, "cpu_flags", lambda: frozenset({"avx2", "amx_bf16"}))
    assert Bf16.expected(known()).is_worth_trying


def test_flags_are_read_from_this_cpu() -> None:
    assert all(" " not in flag for flag in bf16.cpu_flags())


def test_what_it_could_win_on_a_gpu(known: Any) -> None:
    gpu = builders.measurement(software=Software(device=builders.GPU))
    assert Bf16.settings(known(measurement=gpu)) == [{}]
    assert Bf16.expected(known(measurement=gpu)).share == pytest.approx(13 / 20 / 2, abs=0.02)
    already = "the script already computes in"
    half = known(measurement=gpu, precision=Precision(autocast="float16"))
    assert Bf16.expected(half).reason == f"{already} float16"
    cast = known(measurement=gpu, models=[builders.model(dtypes=["bfloat16"])])
    assert Bf16.expected(cast).reason == f"{already} bfloat16"
