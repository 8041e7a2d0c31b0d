"""Float16 products run on a CPU too, slowly, so nearly all of this is the real thing. What comes of
the gradients is in test_scaling."""

from __future__ import annotations

import copy
import io
import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.levers import fp16, skipping
from hotloop.levers.fp16 import Fp16
from hotloop.measurement import Precision, Software
from tests import builders
from tests.levers.scaled_jobs import SMALL, Case, Trained, under


@pytest.fixture
def torch(without_onednn: Any) -> Any:
    return without_onednn


@pytest.fixture
def jobs(torch: Any) -> Any:
    from tests.runtime import jobs

    return jobs


@pytest.fixture
def known(torch: Any) -> Any:
    from tests.levers.jobs import seen

    return seen


def test_the_scripts_loss_and_weights_stay_as_they_are(torch: Any, jobs: Any) -> None:
    model, losses = jobs.Net(16), []

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        losses.append(jobs.plain_loss(model, x, y))
        return losses[-1]

    with under(torch, Fp16()):
        optimizer = torch.optim.Adam(model.parameters())
        jobs.train(model, loss_of=loss_of, optimizer=optimizer)
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert all(loss.item() < 100 and not loss._backward_hooks for loss in losses)
    plain = torch.optim.Adam(jobs.Net(16).parameters())
    saved = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, saved)
    saved.seek(0)
    plain.load_state_dict(torch.load(saved)["optimizer"])
    assert copy.deepcopy(optimizer).state_dict().keys() == plain.state_dict().keys()


def test_a_skipped_step_is_told_to_those_who_examine(torch: Any, jobs: Any) -> None:
    """They hear of a step after us, and look where torch's own scaler leaves its word."""
    for case in (Case("Adam", size=5.0), Case("Adam", fused=True, size=5.0)):
        told: list[float] = []

        def listen(args: Any, result: Any, began: int, told: list[float] = told) -> None:
            told.append(float(getattr(args[0], skipping.FLAG, 0.0)))

        lever = Fp16()
        with under(torch, lever) as seams:
            seams.step.after.insert(1, listen)
            Trained(torch, jobs, case)
        assert 0 < sum(told) == lever.receipt().evidence["steps_skipped"]


def test_an_examination_counts_skipped_steps_as_skipped(torch: Any, jobs: Any) -> None:
    from hotloop.equivalence.structure import skipped, step_differences
    from hotloop.runtime.exam.structure import StructureProbe
    from hotloop.runtime.watching import Watch

    def structure(lever: Fp16 | None, case: Case) -> Any:
        watch = Watch(torch)
        watch.seams.model.at_once = True
        if lever is not None:
            lever.apply(torch, watch.seams)
        numbers = watch.inventory.numbers
        probe = StructureProbe(torch, numbers, lambda optimizer, number: None, at_once=True)
        probe.attach(watch.seams)
        watch.driver.attach()
        try:
            Trained(torch, jobs, case)
        finally:
            watch.driver.detach()
        return probe.structure

    case = Case("Adam", clip="norm", size=5.0)
    lever = Fp16()
    plain, low = structure(None, case), structure(lever, case)
    assert 0 < skipped(low) == lever.receipt().evidence["steps_skipped"]
    assert not list(step_differences(plain, low))


def test_a_script_that_says_float32_is_steered(torch: Any, jobs: Any) -> None:
    context = torch.autocast("cpu", dtype=torch.bfloat16)
    context.fast_dtype = torch.float32

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        with context:
            output = model(x)
        assert output.dtype is torch.float16
        return (output.float() - y).square().mean()

    lever = Fp16()
    with under(torch, lever):
        jobs.train(jobs.Net(16), loss_of=loss_of)
    assert lever.receipt().evidence["own_autocast"]


def test_it_works_where_models_are_found_only_later(torch: Any, jobs: Any) -> None:
    """As in most runs: the first step is the script's own."""
    from tests.levers.jobs import under as found_later

    lever = Fp16()
    with found_later(lever):
        jobs.train(jobs.Net(16))
    assert lever.receipt().applied
    assert lever.receipt().evidence["passes_scaled"] == jobs.STEPS - 1


def test_blocks_that_are_computed_again_are_scaled_once(torch: Any, jobs: Any) -> None:
    from torch.utils.checkpoint import checkpoint

    def gradients(reentrant: bool | None) -> Any:
        torch.manual_seed(0)
        model, lever = jobs.Net(16), Fp16()
        part = model.body.forward
        if reentrant is not None:
            model.body.forward = lambda x: checkpoint(
                part, x.requires_grad_(), use_reentrant=reentrant
            )
        with under(torch, lever):
            jobs.train(model, steps=4)
        assert lever.receipt().evidence["passes_scaled"] == 4
        return [float(p.grad.norm()) for p in model.parameters()]

    wanted = gradients(None)
    for reentrant in (True, False):
        assert gradients(reentrant) == pytest.approx(wanted, rel=1e-3)


def test_a_compiled_model(fresh_torch: Any, jobs: Any) -> None:
    torch = fresh_torch
    model = jobs.Net(16)
    model.compile(backend="aot_eager")
    lever = Fp16()
    with torch.backends.mkldnn.flags(enabled=False):
        from tests.levers.jobs import under as found_later

        with found_later(lever):
            jobs.train(model)
    assert lever.receipt().applied, lever.receipt().reason


def test_with_an_optimizer_that_another_lever_fuses(torch: Any, jobs: Any) -> None:
    """From then on its kernel is told, and the device is not asked."""
    from hotloop.levers.fused_optimizer import FusedOptimizer
    from tests.levers.jobs import under as found_later

    def weights(*levers: Any) -> list[Any]:
        with found_later(*levers):
            return Trained(torch, jobs, Case("AdamW", clip="norm", size=5.0)).weights

    scaled, fused = Fp16(), FusedOptimizer()
    found, expected = weights(scaled, fused), weights(Fp16())
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-6)
    assert scaled.receipt().applied and fused.receipt().applied
    assert scaled.receipt().evidence["steps_skipped"]


# What it does not do.


def refused(torch: Any, lever: Fp16, job: Any) -> str:
    with under(torch, lever):
        job()
    assert not lever.receipt().applied
    return lever.receipt().reason


def test_a_scaler_of_the_scripts_own(torch: Any, jobs: Any) -> None:
    from tests.levers.jobs import train

    scaler = torch.amp.GradScaler("cpu")
    assert refused(torch, Fp16(), lambda: train(scaler=scaler)) == fp16.ITSELF


def test_a_scaler_that_is_switched_off_counts_as_none(torch: Any, jobs: Any) -> None:
    from tests.levers.jobs import train

    lever = Fp16()
    with under(torch, lever):
        train(scaler=torch.amp.GradScaler("cpu", enabled=False))
    assert lever.receipt().applied


@pytest.mark.parametrize("found", ["bfloat16", "float16"])
def test_an_author_who_chose_a_lower_format_keeps_it(found: str, torch: Any, jobs: Any) -> None:
    def loss_of(model: Any, x: Any, y: Any) -> Any:
        with torch.autocast("cpu", dtype=getattr(torch, found)):
            output = model(x)
        return (output.float() - y).square().mean()

    lever = Fp16()
    reason = refused(torch, lever, lambda: jobs.train(jobs.Net(), loss_of=loss_of))
    # At its very first call nobody knows that it will be given one.
    assert reason in (f"the script already computes in {found}", fp16.ITSELF)
    assert lever._scaled == 0


def test_gradients_by_autograd_grad(torch: Any, jobs: Any) -> None:
    model = jobs.Net()

    def job() -> None:
        optimizer = jobs.sgd(model)
        for _ in range(3):
            weights = list(model.parameters())
            loss = jobs.plain_loss(model, *jobs.batch())
            for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
                weight.grad = gradient
            optimizer.step()

    assert refused(torch, Fp16(), job) == fp16.NOT_ADDED_UP


def test_gradients_of_gradients(torch: Any, jobs: Any) -> None:
    def job() -> None:
        model = jobs.Net()
        optimizer = jobs.sgd(model)
        for _ in range(2):
            optimizer.zero_grad()
            jobs.plain_loss(model, *jobs.batch()).backward(create_graph=True)
            optimizer.step()

    assert refused(torch, Fp16(), job) == fp16.AGAIN


def test_several_losses_at_once(torch: Any, jobs: Any) -> None:
    def job() -> None:
        model = jobs.Net()
        jobs.sgd(model)
        losses = [jobs.plain_loss(model, *jobs.batch()) for _ in range(2)]
        torch.autograd.backward(losses)

    assert refused(torch, Fp16(), job) == fp16.SEVERAL


def test_a_list_of_one_loss_is_one_loss(torch: Any, jobs: Any) -> None:
    def job() -> None:
        model = jobs.Net()
        optimizer = jobs.sgd(model)
        for _ in range(3):
            optimizer.zero_grad()
            torch.autograd.backward([SMALL * jobs.plain_loss(model, *jobs.batch())])
            optimizer.step()

    lever = Fp16()
    with under(torch, lever):
        job()
    assert lever.receipt().evidence["passes_scaled"] == 3


@pytest.mark.parametrize("way", ["parameter", "after", "module"])
def test_hooks_of_the_scripts_own(way: str, torch: Any, jobs: Any) -> None:
    seen: list[float] = []

    def job() -> None:
        model = jobs.Net()
        if way == "parameter":
            model.head.weight.register_hook(lambda grad: seen.append(float(grad.norm())))
        elif way == "after":
            model.head.weight.register_post_accumulate_grad_hook(
                lambda weight: seen.append(float(weight.grad.norm()))
            )
        else:
            model.head.register_full_backward_hook(
                lambda module, inner, outer: seen.append(float(outer[0].norm()))
            )
        jobs.train(model)

    assert refused(torch, Fp16(), job) == fp16.HOOKS
    assert max(seen) < 100  # none of them saw a scaled one


def test_hooks_of_our_own_look_at_no_numbers(torch: Any, jobs: Any) -> None:
    """A job that is looked into under a plan has such."""

    def look(weight: Any) -> None:
        pass

    look.__module__ = "hotloop.runtime.look.course"

    def job() -> None:
        model = jobs.Net()
        model.head.weight.register_post_accumulate_grad_hook(look)
        jobs.train(model)

    lever = Fp16()
    with under(torch, lever):
        job()
    assert lever.receipt().applied


def test_a_closure(torch: Any, jobs: Any) -> None:
    def job() -> None:
        model = jobs.Net()
        optimizer = jobs.sgd(model)
        x, y = jobs.batch()

        def closure() -> Any:
            optimizer.zero_grad()
            loss = jobs.plain_loss(model, x, y)
            loss.backward()
            return loss

        for _ in range(3):
            optimizer.step(closure)

    assert refused(torch, Fp16(), job) == skipping.CLOSURE


def test_weights_updated_by_hand(torch: Any, jobs: Any) -> None:
    def job() -> None:
        model = jobs.Net()
        for _ in range(3):
            jobs.plain_loss(model, *jobs.batch()).backward()
            with torch.no_grad():
                for weight in model.parameters():
                    weight -= 0.01 * weight.grad
                    weight.grad = None

    assert refused(torch, Fp16(), job) == fp16.BY_HAND


def test_weights_on_a_fake_second_device(
    torch: Any, jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lever = Fp16()
    monkeypatch.setattr(lever, "_look", lambda loss: {torch.device("cpu"), torch.device("meta")})
    assert refused(torch, lever, lambda: jobs.train(jobs.Net())) == fp16.SPREAD


def test_what_never_is_finite(torch: Any, jobs: Any) -> None:
    def loss_of(model: Any, x: Any, y: Any) -> Any:
        return jobs.plain_loss(model, x, y) * float("inf")

    reason = refused(torch, Fp16(), lambda: jobs.train(jobs.Net(), loss_of=loss_of))
    assert reason == "every step was skipped, for gradients that are not finite"


def test_once_it_has_stopped_no_step_is_skipped_any_more(torch: Any, jobs: Any) -> None:
    """A flag that was set last counts for the step it was set for, and not for ever."""
    model = jobs.Net()

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        return jobs.plain_loss(model, x, y) * float("inf")

    def job() -> None:
        optimizer = jobs.sgd(model)
        jobs.train(model, steps=2, loss_of=loss_of, optimizer=optimizer)
        x, y = jobs.batch()
        torch.autograd.grad(jobs.plain_loss(model, x, y), list(model.parameters()))
        jobs.train(model, steps=2, optimizer=optimizer)
        before = model.head.weight.detach().clone()
        jobs.train(model, steps=1, optimizer=optimizer)
        assert not torch.equal(before, model.head.weight)
        assert model.head.weight.isfinite().all()

    assert refused(torch, Fp16(), job) == fp16.NOT_ADDED_UP


def test_a_fake_scaler_of_the_scripts_own_keeps_its_flag(torch: Any, jobs: Any) -> None:
    """One that comes later: what it tells its optimizer is not ours to take away."""
    model = jobs.Net()
    lever = Fp16()
    with under(torch, lever) as seams:
        optimizer = torch.optim.Adam(model.parameters(), fused=True)
        jobs.train(model, optimizer=optimizer)
        theirs = torch.zeros(())
        optimizer.found_inf = theirs
        seams.scale.before[0]((SimpleNamespace(is_enabled=lambda: True), None), {})
        del lever._skipping._flags[optimizer]
        optimizer.step()
        assert optimizer.found_inf is theirs


def test_without_products_or_training_there_is_no_receipt(torch: Any, jobs: Any) -> None:
    norm = torch.nn.LayerNorm(4)
    reason = refused(torch, Fp16(), lambda: jobs.train(norm))
    assert reason == "no matrix product was computed in float16"
    assert refused(torch, Fp16(), lambda: None) == "no model was trained under it"


def test_where_it_could_help(known: Any) -> None:
    old = builders.measurement(software=Software(device=builders.GPU, bfloat16=False))
    new = replace(old, software=replace(old.software, bfloat16=True))
    assert Fp16.settings(known(measurement=old)) == [{}]
    assert Fp16.expected(known(measurement=old)).share == pytest.approx(13 / 20 / 2, abs=0.02)
    assert "this GPU has bfloat16" in Fp16.expected(known(measurement=new)).reason
    asked = replace(known(measurement=new), only=("fp16",))
    assert Fp16.expected(asked).is_worth_trying
    assert Fp16.expected(known()).reason == "float16 is for GPUs"
    half = known(measurement=old, precision=Precision(autocast="float16"))
    assert Fp16.expected(half).reason == "the script already computes in float16"
    scaled = known(measurement=old, precision=Precision(grad_scaler=True))
    assert Fp16.expected(scaled).reason == fp16.ITSELF


# On a GPU.


@pytest.fixture
def cuda(torch: Any) -> Any:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    return torch


@pytest.mark.gpu
@pytest.mark.parametrize(
    "case",
    [
        Case(kind, fused, clip, passes, size, device="cuda")
        for (kind, fused), clip, passes, size in itertools.product(
            [("SGD", False), ("AdamW", True)], ["", "norm"], [1, 2], [1.0, 5.0]
        )
    ],
    ids=repr,
)
def test_on_a_gpu_weights_are_those_of_a_scaler_by_hand(case: Case, cuda: Any, jobs: Any) -> None:
    by_hand = Trained(cuda, jobs, case, cuda.amp.GradScaler("cuda"))
    lever = Fp16()
    with under(cuda, lever):
        ours = Trained(cuda, jobs, case)
    assert lever.receipt().applied, lever.receipt().reason
    for one, other in zip(ours.weights, by_hand.weights, strict=True):
        assert cuda.allclose(one, other, rtol=1e-3, atol=1e-5)
    assert lever.receipt().evidence["scale"] == by_hand._scaler.get_scale()


@pytest.mark.gpu
def test_on_a_gpu_nothing_waits_with_a_fused_optimizer(cuda: Any, jobs: Any) -> None:
    batches = [[each.cuda() for each in jobs.batch()] for _ in range(32)]

    def train(model: Any, optimizer: Any, batches: Any) -> None:
        for x, y in batches:
            optimizer.zero_grad()
            jobs.plain_loss(model, x, y).backward()
            cuda.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    lever = Fp16()
    with under(cuda, lever):
        model = jobs.Net(64).cuda()
        optimizer = cuda.optim.Adam(model.parameters(), fused=True)
        # The first step is asked for, and products are looked at.
        train(model, optimizer, batches[:16])
        before = cuda.cuda.get_sync_debug_mode()
        cuda.cuda.set_sync_debug_mode("error")
        try:
            train(model, optimizer, batches[16:])
        finally:
            cuda.cuda.set_sync_debug_mode(before)
    assert lever.receipt().applied, lever.receipt().reason
