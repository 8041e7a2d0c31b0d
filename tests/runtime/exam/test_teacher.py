from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.evidence import Difference
from hotloop.runtime.exam.teacher import Teacher

STEP = 3
"""The step that is compared, after as many without."""


class Training:
    """A model and its optimizer, to be stepped by hand on given batches."""

    def __init__(
        self, torch: Any, jobs: Any, make: Callable[[Any], Any], model: Any = None
    ) -> None:
        self.torch, self.jobs = torch, jobs
        self.model = model or jobs.Net()
        self.optimizer = make(self.model.parameters())

    def step(self, number: int, factor: float = 1.0) -> None:
        torch = self.torch
        torch.manual_seed(number)
        x, y = self.jobs.batch()

        def closure() -> Any:
            self.optimizer.zero_grad()
            loss = factor * self.jobs.plain_loss(self.model, x, y)
            loss.backward()
            return loss

        if isinstance(self.optimizer, torch.optim.LBFGS):
            self.optimizer.step(closure)
        else:
            closure()
            self.optimizer.step()


def begin(training: Training, folder: Path, is_reference: bool) -> Teacher:
    teacher = Teacher(training.torch, folder, is_reference, points=1)
    teacher.meet(0, training.optimizer)
    teacher.begin(STEP, [training.model])
    return teacher


def taught(reference: Training, candidate: Training, folder: Path, factor: float = 1.0) -> Teacher:
    """Both take steps of their own; then one from the reference's weights is compared."""
    for number in range(STEP):
        reference.step(number)
        candidate.step(number + 100)
    first = begin(reference, folder, is_reference=True)
    reference.step(STEP)
    first.end(STEP, 0)
    assert (first.problem, first.forced) == ("", [STEP])
    second = begin(candidate, folder, is_reference=False)
    candidate.step(STEP, factor)
    second.end(STEP, 0)
    return second


def of(teacher: Teacher, quantity: str) -> list[Difference]:
    assert teacher.problem == ""
    return [one for one in teacher.differences if one.quantity == quantity]


OPTIMIZERS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "momentum": lambda optim: lambda weights: optim.SGD(weights, lr=0.1, momentum=0.9),
    "adam": lambda optim: lambda weights: optim.Adam(weights, lr=0.01, amsgrad=True),
    "adamw": lambda optim: lambda weights: optim.AdamW(weights, lr=0.01),
    "rprop": lambda optim: lambda weights: optim.Rprop(weights),
    "lbfgs": lambda optim: lambda weights: optim.LBFGS(weights, max_iter=3),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_step_from_the_references_state_is_the_references_step(
    name: str, torch: Any, jobs: Any, tmp_path: Path
) -> None:
    make = OPTIMIZERS[name](torch.optim)
    teacher = taught(Training(torch, jobs, make), Training(torch, jobs, make), tmp_path)
    for quantity in ("gradient", "update"):
        found = of(teacher, quantity)
        assert len(found) == 4
        assert all(one.difference == 0.0 for one in found)
        assert any(one.reference > 0 for one in found)
        assert all(one.along == pytest.approx(1.0) for one in found)
    assert teacher.forced == [STEP]


def test_a_fused_optimizer_takes_the_same_step_but_for_rounding(
    torch: Any, jobs: Any, tmp_path: Path
) -> None:
    plain = Training(torch, jobs, lambda weights: torch.optim.AdamW(weights, lr=0.01))
    fused = Training(torch, jobs, lambda weights: torch.optim.AdamW(weights, lr=0.01, fused=True))
    for one in of(taught(plain, fused, tmp_path), "update"):
        assert one.difference is not None
        assert one.difference <= 8 * one.ulp
        assert one.difference < 1e-4 * one.reference


def test_state_that_was_not_restored_would_show(torch: Any, jobs: Any, tmp_path: Path) -> None:
    """The tests above would be content with a momentum that has no effect."""
    make = OPTIMIZERS["momentum"](torch.optim)
    reference, candidate = Training(torch, jobs, make), Training(torch, jobs, make)
    for number in range(STEP):
        reference.step(number)
    first = begin(reference, tmp_path, is_reference=True)
    reference.step(STEP)
    first.end(STEP, 0)
    second = begin(candidate, tmp_path, is_reference=False)
    candidate.optimizer.state.clear()
    candidate.step(STEP)
    second.end(STEP, 0)
    assert all(one.difference == 0.0 for one in of(second, "gradient"))
    updates = of(second, "update")
    assert any(one.difference and one.difference > 0.1 * one.reference for one in updates)


def test_gradients_of_another_size_differ_along_the_reference(
    torch: Any, jobs: Any, tmp_path: Path
) -> None:
    make = OPTIMIZERS["momentum"](torch.optim)
    teacher = taught(Training(torch, jobs, make), Training(torch, jobs, make), tmp_path, factor=1.5)
    for one in of(teacher, "gradient"):
        assert one.difference == pytest.approx(0.5 * one.reference, rel=1e-4)
        assert one.along == pytest.approx(1.5 if one.reference else 1.0, rel=1e-4)


def test_an_update_by_a_gradient_that_rounding_has_decided_is_told_apart(
    torch: Any, jobs: Any, tmp_path: Path
) -> None:
    """What is taken off again has no gradient; an optimizer makes an update of what is left."""

    class Shifted(torch.nn.Module):  # type: ignore[misc]
        def __init__(self, scale: float) -> None:
            super().__init__()
            self.net, self.shift = jobs.Net(), torch.nn.Parameter(torch.ones(8, 1))
            self.scale = scale

        def forward(self, x: Any) -> Any:
            shifted = self.net(x) + self.scale * self.shift[: len(x)]
            return shifted - self.scale * (1 + 1e-7) * self.shift[: len(x)]

    def training(scale: float) -> Training:
        def adam(weights: Any) -> Any:
            return torch.optim.Adam(weights, lr=0.01, eps=1e-15)

        return Training(torch, jobs, adam, Shifted(scale))

    found = {
        one.tensor: one for one in of(taught(training(1.0), training(-1.0), tmp_path), "update")
    }
    shift = found.pop("model 0: shift")
    assert shift.difference is not None and shift.difference > 0.1 * shift.reference > 0
    assert shift.unsettled == pytest.approx(shift.difference)
    assert all(one.unsettled == 0.0 for one in found.values())


def test_buffers_are_part_of_what_a_step_begins_from(torch: Any, jobs: Any, tmp_path: Path) -> None:
    def model() -> Any:
        return torch.nn.Sequential(torch.nn.BatchNorm1d(4, affine=False), jobs.Net()).train()

    make = OPTIMIZERS["adamw"](torch.optim)
    reference = Training(torch, jobs, make, model())
    candidate = Training(torch, jobs, make, model())
    for number in range(STEP):
        reference.step(number)
    begin(reference, tmp_path, is_reference=True)
    begin(candidate, tmp_path, is_reference=False)
    assert torch.equal(candidate.model[0].running_mean, reference.model[0].running_mean)
    assert candidate.model[0].num_batches_tracked == STEP


def test_gradients_that_have_piled_up_are_carried_over(
    torch: Any, jobs: Any, tmp_path: Path
) -> None:
    make = OPTIMIZERS["momentum"](torch.optim)
    reference, candidate = Training(torch, jobs, make), Training(torch, jobs, make)
    reference.step(0)  # and its gradients stay
    begin(reference, tmp_path, is_reference=True)
    begin(candidate, tmp_path, is_reference=False)
    pairs = zip(reference.model.parameters(), candidate.model.parameters(), strict=True)
    assert all(torch.equal(one.grad, other.grad) for one, other in pairs)


def test_random_numbers_go_on_from_where_the_reference_was(
    torch: Any, jobs: Any, tmp_path: Path
) -> None:
    make = OPTIMIZERS["adamw"](torch.optim)
    training = Training(torch, jobs, make)
    begin(training, tmp_path, is_reference=True)
    expected = torch.rand(3)
    begin(training, tmp_path, is_reference=False)
    assert torch.equal(torch.rand(3), expected)


def test_a_gradient_that_is_missing_is_reported_as_such(
    torch: Any, jobs: Any, tmp_path: Path
) -> None:
    make = OPTIMIZERS["momentum"](torch.optim)
    reference, candidate = Training(torch, jobs, make), Training(torch, jobs, make)
    first = begin(reference, tmp_path, is_reference=True)
    reference.step(STEP)
    first.end(STEP, 0)
    second = begin(candidate, tmp_path, is_reference=False)
    candidate.step(STEP)
    candidate.model.head.bias.grad = None
    second.end(STEP, 0)
    missing = [one.tensor for one in of(second, "gradient") if one.difference is None]
    assert missing == ["model 0: head.bias"]


def test_one_that_is_not_a_number_is_none_too(torch: Any, jobs: Any, tmp_path: Path) -> None:
    make = OPTIMIZERS["momentum"](torch.optim)
    reference, candidate = Training(torch, jobs, make), Training(torch, jobs, make)
    teacher = taught(reference, candidate, tmp_path, factor=float("nan"))
    assert all(one.difference is None for one in of(teacher, "update"))


def test_a_sparse_gradient_is_compared_like_any_other(
    torch: Any, jobs: Any, tmp_path: Path
) -> None:
    class Lookup(torch.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.EmbeddingBag(8, 1, sparse=True)

        def forward(self, x: Any) -> Any:
            return self.table(x.argsort(1))

    make = OPTIMIZERS["momentum"](torch.optim)
    reference = Training(torch, jobs, make, Lookup())
    candidate = Training(torch, jobs, make, Lookup())
    (found,) = of(taught(reference, candidate, tmp_path), "gradient")
    assert found.difference == 0.0
    assert found.reference > 0


def test_another_model_cannot_begin_from_those_weights(
    torch: Any, jobs: Any, tmp_path: Path
) -> None:
    make = OPTIMIZERS["momentum"](torch.optim)
    begin(Training(torch, jobs, make), tmp_path, is_reference=True)
    renamed = Training(torch, jobs, make, torch.nn.Sequential(jobs.Net()))
    teacher = begin(renamed, tmp_path, is_reference=False)
    teacher.end(STEP, 0)
    assert "step 4 could not begin from the reference's weights" in teacher.problem
    assert "other weights than the reference, such as model 0: 0.body.0.bias" in teacher.problem
    assert (teacher.differences, teacher.forced) == ([], [])


def test_weights_that_no_model_holds_are_named_after_their_optimizer(
    torch: Any, jobs: Any, tmp_path: Path
) -> None:
    def parts() -> tuple[Training, Any]:
        extra = torch.nn.Parameter(torch.ones(2))
        training = Training(torch, jobs, lambda weights: torch.optim.SGD([*weights, extra], lr=0.1))
        return training, extra

    reference, extra = parts()
    extra.data.fill_(5.0)
    begin(reference, tmp_path, is_reference=True)
    candidate, other = parts()
    teacher = begin(candidate, tmp_path, is_reference=False)
    assert teacher.problem == ""
    assert other.tolist() == [5.0, 5.0]


def test_a_step_that_the_reference_skipped_is_not_compared(
    torch: Any, jobs: Any, tmp_path: Path
) -> None:
    make = OPTIMIZERS["momentum"](torch.optim)
    begin(Training(torch, jobs, make), tmp_path, is_reference=True)
    candidate = Training(torch, jobs, make)
    teacher = begin(candidate, tmp_path, is_reference=False)
    candidate.step(STEP)
    teacher.end(STEP, 0)
    assert (teacher.differences, teacher.forced, teacher.problem) == ([], [], "")


def test_a_full_disk_is_a_problem_and_not_a_crash(
    torch: Any, jobs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = SimpleNamespace(free=100)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: usage)
    training = Training(torch, jobs, OPTIMIZERS["momentum"](torch.optim))
    teacher = begin(training, tmp_path, is_reference=True)
    assert "of disk space are needed" in teacher.problem
    assert not list(tmp_path.iterdir())


def test_only_saved_steps_can_be_begun(torch: Any, jobs: Any, tmp_path: Path) -> None:
    begin(Training(torch, jobs, OPTIMIZERS["momentum"](torch.optim)), tmp_path, is_reference=True)
    teacher = Teacher(torch, tmp_path, is_reference=False, points=1)
    assert [step for step in range(9) if teacher.has(step)] == [STEP]


def test_the_optimizer_keeps_the_memory_of_its_state(torch: Any, jobs: Any, tmp_path: Path) -> None:
    """Fused kernels and captured graphs know the addresses."""
    make = OPTIMIZERS["adamw"](torch.optim)
    training = Training(torch, jobs, make)
    training.step(0)
    state = training.optimizer.state[training.model.head.bias]
    addresses = {key: value.data_ptr() for key, value in state.items()}
    begin(training, tmp_path, is_reference=True)
    saved = copy.deepcopy(state)
    training.step(1)
    begin(training, tmp_path, is_reference=False)
    assert {key: value.data_ptr() for key, value in state.items()} == addresses
    assert all(torch.equal(state[key], saved[key]) for key in saved)
