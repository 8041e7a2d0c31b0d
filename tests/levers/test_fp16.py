"""Float16 products run on a CPU too, slowly, so nearly all of this is the real thing."""

from __future__ import annotations

import copy
import io
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.levers import fp16, skipping
from hotloop.levers.fp16 import Fp16
from hotloop.measurement import Precision, Software
from hotloop.seams import Seams
from tests import builders

STEPS = 8
SMALL = 0.01
"""A loss that does not overflow when it is scaled: no step is skipped, so gradients compare."""


@pytest.fixture
def torch() -> Iterator[Any]:
    """Without oneDNN: in a virtual machine that lists AMX but does not let it run, its products in
    16 bits end the process by an illegal instruction."""
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


@contextmanager
def under(torch: Any, lever: Fp16) -> Iterator[Seams]:
    """From the model's very first call on."""
    from hotloop.runtime.script import ScriptDriver

    seams = Seams()
    seams.model.at_once = True
    lever.apply(torch, seams)
    driver = ScriptDriver(torch, seams)
    driver.attach()
    try:
        yield seams
    finally:
        driver.detach()
        assert not torch.is_autocast_enabled("cpu")


@dataclass(frozen=True)
class Case:
    kind: str = "SGD"
    fused: bool = False
    clip: str = ""
    passes: int = 1
    size: float = 1.0
    """Of the loss: a large one overflows until the scale is small enough."""
    optimizers: int = 1
    device: str = "cpu"


class Trained:
    """An ordinary loop, from the seed to the weights; with a scaler by hand, or without."""

    def __init__(self, torch: Any, jobs: Any, case: Case, scaler: Any = None) -> None:
        self.logged: list[float] = []
        self._torch, self._case, self._scaler = torch, case, scaler
        torch.manual_seed(3)
        self.model = jobs.Net(16).to(case.device)
        parts = [self.model.body, self.model.head] if case.optimizers == 2 else [self.model]
        self.optimizers = [self._optimizer(part) for part in parts]
        for _ in range(STEPS):
            self._step(
                [[each.to(case.device) for each in jobs.batch()] for _ in range(case.passes)]
            )
        self.weights = [p.detach().clone() for p in self.model.parameters()]

    def _optimizer(self, part: Any) -> Any:
        options: dict[str, Any] = {"momentum": 0.9} if self._case.kind == "SGD" else {}
        if self._case.fused:
            options["fused"] = True
        kind = getattr(self._torch.optim, self._case.kind)
        return kind(part.parameters(), lr=0.01, **options)

    def _step(self, batches: list[Any]) -> None:
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        for x, y in batches:
            self._differentiate(x, y)
        if self._scaler is not None:
            for optimizer in self.optimizers:
                self._scaler.unscale_(optimizer)
        self.logged += [float(p.grad.norm()) for p in self.model.parameters()]
        weights = list(self.model.parameters())
        if self._case.clip == "norm":
            self.logged.append(float(self._torch.nn.utils.clip_grad_norm_(weights, 0.05)))
        elif self._case.clip == "value":
            self._torch.nn.utils.clip_grad_value_(weights, 0.01)
        for optimizer in self.optimizers:
            optimizer.step() if self._scaler is None else self._scaler.step(optimizer)
        if self._scaler is not None:
            self._scaler.update()

    def _differentiate(self, x: Any, y: Any) -> None:
        if self._scaler is None:
            self._loss(x, y).backward()
        else:
            with self._torch.autocast(self._case.device, dtype=self._torch.float16):
                loss = self._loss(x, y)
            self._scaler.scale(loss).backward()

    def _loss(self, x: Any, y: Any) -> Any:
        error = self._torch.nn.functional.mse_loss(self.model(x), y)
        return self._case.size * error / self._case.passes


CASES = [
    Case(kind, fused, clip, passes, size, optimizers)
    for (kind, fused), clip, passes, size, optimizers in itertools.product(
        [("SGD", False), ("AdamW", False), ("Adam", True)],
        ["", "norm", "value"],
        [1, 3],
        [1.0, 5.0],
        [1, 2],
    )
    if not (clip == "norm" and size > 1 and optimizers > 1)  # torch's own scaler fails: see below
]


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_weights_are_those_of_a_loop_with_a_scaler_by_hand(
    case: Case, torch: Any, jobs: Any
) -> None:
    """To the last bit; and so is what the script logs between backward pass and step."""
    by_hand = Trained(torch, jobs, case, torch.amp.GradScaler("cpu"))
    lever = Fp16()
    with under(torch, lever):
        ours = Trained(torch, jobs, case)
    receipt = lever.receipt()
    assert receipt.applied, receipt.reason
    assert all(map(torch.equal, ours.weights, by_hand.weights))
    assert str(ours.logged) == str(by_hand.logged)  # a skipped one holds infinities
    assert receipt.evidence["scale"] == by_hand._scaler.get_scale()
    assert bool(receipt.evidence["steps_skipped"]) == (by_hand._scaler.get_scale() < 2.0**16)
    assert receipt.evidence["steps"] == STEPS * case.optimizers
    assert receipt.evidence["passes_scaled"] == STEPS * case.passes


def test_a_case_that_overflows_does(torch: Any, jobs: Any) -> None:
    """The test above would be content without."""
    lever = Fp16()
    with under(torch, lever):
        Trained(torch, jobs, Case(size=5.0))
    assert 0 < lever.receipt().evidence["steps_skipped"] < STEPS  # type: ignore[operator]


def test_small_gradients_survive_that_float16_has_no_numbers_for(torch: Any, jobs: Any) -> None:
    def gradients(lever: Fp16 | None) -> list[float]:
        torch.manual_seed(0)
        model = jobs.Net(16)
        loss = lambda model, x, y: 1e-8 * jobs.plain_loss(model, x, y)  # noqa: E731
        if lever is None:
            jobs.train(model, steps=2, loss_of=loss)
        else:
            with under(torch, lever):
                jobs.train(model, steps=2, loss_of=loss)
        return [float(p.grad.norm()) for p in model.parameters()]

    assert gradients(Fp16()) == pytest.approx(gradients(None), rel=0.02)


def test_fused_sgd_that_overflows_at_once_has_no_momentum_from_nowhere(
    torch: Any, jobs: Any
) -> None:
    """torch leaves the buffer of a skipped first step unwritten, with a scaler by hand as well."""
    plain, fused = (Case("SGD", fused=each, size=5.0) for each in (False, True))
    with under(torch, Fp16()):
        expected = Trained(torch, jobs, plain).weights
    with under(torch, Fp16()):
        found = Trained(torch, jobs, fused).weights
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("fused", [False, True])
def test_optimizers_that_are_clipped_together_are_skipped_together(
    fused: bool, torch: Any, jobs: Any
) -> None:
    """With a scaler by hand one of them steps by what is not a number, as the norm of all is."""
    case = Case("Adam", fused, "norm", passes=3, size=5.0, optimizers=2)
    assert not Trained(torch, jobs, case, torch.amp.GradScaler("cpu")).weights[0].isfinite().all()
    lever = Fp16()
    with under(torch, lever):
        ours = Trained(torch, jobs, case)
    assert all(weight.isfinite().all() for weight in ours.weights)
    assert 0 < lever.receipt().evidence["steps_skipped"] < 2 * STEPS  # type: ignore[operator]


def test_whatever_the_script_wants_a_gradient_of_is_unscaled(torch: Any, jobs: Any) -> None:
    """An input, a result in between, a parameter that nobody steps."""
    extra = torch.nn.Parameter(torch.ones(1))

    def train(steps: int) -> list[Any]:
        torch.manual_seed(0)
        model, found = jobs.Net(16), []
        optimizer = torch.optim.SGD(model.head.parameters(), lr=0.01)
        for _ in range(steps):
            x, y = jobs.batch()
            x.requires_grad_()
            extra.grad = None
            model.zero_grad()
            hidden = model(x)
            hidden.retain_grad()
            (SMALL * ((hidden * extra).float() - y).square().mean()).backward()
            body = model.body[0].weight.grad
            found.append([float(t.norm()) for t in (x.grad, hidden.grad, extra.grad, body)])
            optimizer.step()
        return found

    with under(torch, Fp16()):
        low = train(10)
    for one, other in zip(low, train(10), strict=True):
        assert one == pytest.approx(other, rel=0.05)


def test_one_graph_differentiated_twice(torch: Any, jobs: Any) -> None:
    def train() -> list[float]:
        torch.manual_seed(0)
        model = jobs.Net(16)
        optimizer = jobs.sgd(model)
        for _ in range(4):
            x, y = jobs.batch()
            optimizer.zero_grad(set_to_none=False)
            output = model(x)
            (SMALL * (output - y).square().mean()).backward(retain_graph=True)
            (SMALL * (output - y).abs().mean()).backward()
            optimizer.step()
        return [float(p.grad.norm()) for p in model.parameters()]

    lever = Fp16()
    with under(torch, lever):
        low = train()
    assert low == pytest.approx(train(), rel=0.02)
    assert lever.receipt().evidence["passes_scaled"] == 8


def test_a_loss_that_is_no_number(torch: Any, jobs: Any) -> None:
    def train() -> list[float]:
        torch.manual_seed(0)
        model = jobs.Net(16)
        optimizer = jobs.sgd(model)
        for _ in range(4):
            x, y = jobs.batch()
            optimizer.zero_grad()
            errors = (model(x) - y).square()
            errors.backward(torch.full_like(errors, SMALL / 6))
            optimizer.step()
        return [float(p.grad.norm()) for p in model.parameters()]

    lever = Fp16()
    with under(torch, lever):
        low = train()
    assert lever.receipt().applied
    assert low == pytest.approx(train(), rel=0.02)


def test_a_loss_that_is_in_float16_itself(torch: Any, jobs: Any) -> None:
    """Scaled by 65536 it has no number for it: its first step is skipped."""
    kinds = []

    def loss_of(model: Any, x: Any, y: Any) -> Any:
        loss = model(x).mean()
        kinds.append(loss.dtype)
        return loss

    lever = Fp16()
    with under(torch, lever):
        jobs.train(jobs.Net(16), loss_of=loss_of)
    assert set(kinds) == {torch.float16}
    assert lever.receipt().evidence["steps_skipped"] == 1


def test_sparse_gradients(torch: Any) -> None:
    class Words(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(8, 4, sparse=True)
            self.head = torch.nn.Linear(4, 1)

        def forward(self, x: Any) -> Any:
            return self.head(self.table(x))

    def train() -> Any:
        torch.manual_seed(0)
        model = Words()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(4):
            optimizer.zero_grad()
            for _ in range(2):
                (SMALL * model(torch.randint(8, (6,))).float().square().mean()).backward()
            optimizer.step()
        return model.table.weight.grad.to_dense()

    with under(torch, Fp16()):
        low = train()
    assert torch.allclose(low, train(), rtol=0.05, atol=1e-3)


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

    def gradients(reentrant: bool) -> Any:
        torch.manual_seed(0)
        model = jobs.Net(16)
        part = model.body.forward
        model.body.forward = lambda x: checkpoint(part, x.requires_grad_(), use_reentrant=reentrant)
        with under(torch, Fp16()):
            jobs.train(model, steps=4)
        return [float(p.grad.norm()) for p in model.parameters()]

    torch.manual_seed(0)
    plain = jobs.Net(16)
    jobs.train(plain, steps=4)
    wanted = [float(p.grad.norm()) for p in plain.parameters()]
    for reentrant in (True, False):
        assert gradients(reentrant) == pytest.approx(wanted, rel=0.05)


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
    model = jobs.Net(64).cuda()
    optimizer = cuda.optim.Adam(model.parameters(), fused=True)
    batches = [[each.cuda() for each in jobs.batch()] for _ in range(24)]

    def train(batches: Any) -> None:
        for x, y in batches:
            optimizer.zero_grad()
            jobs.plain_loss(model, x, y).backward()
            cuda.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    lever = Fp16()
    with under(cuda, lever):
        train(batches[:8])  # the first step is asked for, and products are looked at
        before = cuda.cuda.get_sync_debug_mode()
        cuda.cuda.set_sync_debug_mode("error")
        try:
            train(batches[8:])
        finally:
            cuda.cuda.set_sync_debug_mode(before)
    assert lever.receipt().applied
