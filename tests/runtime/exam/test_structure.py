from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from hotloop.evidence import StepSeen, Structure
from hotloop.runtime.exam.structure import StructureProbe
from hotloop.runtime.watching import Watch


class Noted:
    """A structure probe on a watched process."""

    def __init__(self, torch: Any) -> None:
        self.watch = Watch(torch)
        self.told: list[int] = []
        numbers = self.watch.inventory.numbers
        self.probe = StructureProbe(torch, numbers, lambda _, number: self.told.append(number))
        self.probe.attach(self.watch.seams)
        self.watch.driver.attach()

    @property
    def structure(self) -> Structure:
        return self.probe.structure

    @property
    def steps(self) -> list[StepSeen]:
        return self.structure.steps

    def values(self, name: str) -> list[tuple[int, str]]:
        settings = self.structure.settings
        return [(seen.step, seen.value) for seen in settings if seen.name == name]


@pytest.fixture
def noted(torch: Any, unharmed: None) -> Iterator[Noted]:
    noted = Noted(torch)
    yield noted
    noted.watch.driver.detach()


def backward(jobs: Any, model: Any) -> None:
    jobs.plain_loss(model, *jobs.batch()).backward()


def test_an_ordinary_step(jobs: Any, noted: Noted) -> None:
    jobs.train(jobs.Net(), steps=3)
    assert noted.steps == [StepSeen(0, taken=True, moved=True, passes=1, clips=0)] * 3
    assert noted.told == [0, 0, 0]


def test_backward_passes_are_counted_up_to_the_step(jobs: Any, noted: Noted) -> None:
    model = jobs.Net()
    optimizer = jobs.sgd(model)
    for passes in (1, 3):
        for _ in range(passes):
            backward(jobs, model)
        optimizer.step()
    assert [step.passes for step in noted.steps] == [1, 3]


def test_a_pass_by_autograd_grad_counts_as_well(torch: Any, jobs: Any, noted: Noted) -> None:
    model = jobs.Net()
    weights = list(model.parameters())
    loss = jobs.plain_loss(model, *jobs.batch())
    for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
        weight.grad = gradient
    jobs.sgd(model).step()
    assert [step.passes for step in noted.steps] == [1]


def test_what_a_checkpointed_block_differentiates_is_no_pass_of_the_job(
    torch: Any, jobs: Any, noted: Noted
) -> None:
    checkpoint = __import__("torch.utils.checkpoint").utils.checkpoint.checkpoint
    model = jobs.Net()
    x, y = jobs.batch()
    x.requires_grad_()
    (checkpoint(model, x, use_reentrant=True) - y).square().mean().backward()
    jobs.sgd(model).step()
    assert [step.passes for step in noted.steps] == [1]


@pytest.mark.parametrize("says_so", [True, False])
def test_what_torch_differentiates_to_compile_is_no_pass_of_the_job(
    torch: Any, jobs: Any, says_so: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`says_so`: whether it calls that compiling, which not all of its versions do."""
    if not says_so:
        monkeypatch.setattr(torch.compiler, "is_compiling", lambda: False)
    noted = Noted(torch)
    model, (x, y) = jobs.Net(), jobs.batch()
    loss = torch.compile(lambda one, other: (one - other).square().mean(), backend="aot_eager")
    loss(model(x), y).backward()
    jobs.sgd(model).step()
    noted.watch.driver.detach()
    assert [step.passes for step in noted.steps] == [1]


def test_clips_are_counted_by_the_step(torch: Any, jobs: Any, noted: Noted) -> None:
    model = jobs.Net()
    optimizer = jobs.sgd(model)
    for clips in (0, 2):
        backward(jobs, model)
        for _ in range(clips):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    assert [step.clips for step in noted.steps] == [0, 2]


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_that_a_scaler_skips_is_one_that_was_not_taken(
    torch: Any, jobs: Any, noted: Noted, fused: bool
) -> None:
    model = jobs.Net()
    optimizer = torch.optim.AdamW(model.parameters(), fused=fused)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for overflows in (True, False):
        loss = jobs.plain_loss(model, *jobs.batch())
        optimizer.zero_grad()
        scaler.scale(loss * float("inf") if overflows else loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert noted.steps == [
        StepSeen(0, taken=False, moved=False, passes=1, clips=0),
        StepSeen(0, taken=True, moved=True, passes=1, clips=0),
    ]


def test_a_step_that_changes_nothing_has_not_moved(torch: Any, jobs: Any, noted: Noted) -> None:
    model = jobs.Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    backward(jobs, model)
    optimizer.step()
    assert [step.moved for step in noted.steps] == [False]


def test_a_step_whose_update_is_undone_afterwards_has_not_moved(
    torch: Any, jobs: Any, noted: Noted
) -> None:
    model = jobs.Net()
    optimizer = jobs.sgd(model)
    for number in range(4):
        optimizer.zero_grad()
        backward(jobs, model)
        before = [weight.detach().clone() for weight in model.parameters()]
        optimizer.step()
        if number == 1:
            for weight, was in zip(model.parameters(), before, strict=True):
                weight.data.copy_(was)
    assert [step.moved for step in noted.steps] == [True, False, True, True]


def test_weights_that_a_script_clamps_between_steps_have_moved(
    torch: Any, jobs: Any, noted: Noted
) -> None:
    model = jobs.Net()
    optimizer = jobs.sgd(model)
    for _ in range(3):
        backward(jobs, model)
        optimizer.step()
        for weight in model.parameters():
            weight.data.clamp_(-0.2, 0.2)
    assert all(step.moved for step in noted.steps)


def test_settings_are_noted_where_they_change(torch: Any, jobs: Any, noted: Noted) -> None:
    model = jobs.Net()
    optimizer = jobs.sgd(model)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
    for _ in range(4):
        backward(jobs, model)
        optimizer.step()
        scheduler.step()
    assert noted.values("lr") == [(0, "0.01"), (2, "0.005")]
    assert noted.values("momentum") == [(0, "0")]
    assert noted.values("parameters") == [(0, "4")]


def test_a_learning_rate_in_a_tensor_is_the_number_that_it_holds(
    torch: Any, jobs: Any, noted: Noted
) -> None:
    model = jobs.Net()
    optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(0.125))
    backward(jobs, model)
    optimizer.step()
    assert noted.values("lr") == [(0, "0.125")]


def test_how_an_update_is_computed_is_no_setting_of_the_training(
    torch: Any, jobs: Any, noted: Noted
) -> None:
    model = jobs.Net()
    backward(jobs, model)
    torch.optim.AdamW(model.parameters(), fused=True).step()
    names = {seen.name for seen in noted.structure.settings}
    assert {"lr", "betas", "weight_decay"} <= names
    assert not names & {"fused", "foreach", "capturable", "params"}


def test_every_group_has_its_own_settings(torch: Any, jobs: Any, noted: Noted) -> None:
    model = jobs.Net()
    groups = [
        {"params": model.body.parameters()},
        {"params": model.head.parameters(), "lr": 0.5},
    ]
    backward(jobs, model)
    torch.optim.SGD(groups, lr=0.25).step()
    found = [(s.group, s.value) for s in noted.structure.settings if s.name == "lr"]
    assert found == [(0, "0.25"), (1, "0.5")]


def test_two_optimizers_are_told_apart(jobs: Any, noted: Noted) -> None:
    one, two = jobs.Net(), jobs.Net(width=5)
    first, second = jobs.sgd(one), jobs.sgd(two)
    for _ in range(2):
        for model, optimizer in ((one, first), (two, second)):
            backward(jobs, model)
            optimizer.step()
    assert [step.optimizer for step in noted.steps] == [0, 1, 0, 1]


def test_what_the_loader_delivers_and_what_the_model_is_given(jobs: Any, noted: Noted) -> None:
    jobs.train_on(jobs.loader(size=5), jobs.Net())
    given = noted.structure.given
    of_loader = [one for one in given if one.stream == "loader 0"]
    assert [one.samples for one in of_loader] == [5, 5, 5, 5, 5, 5, 2]
    assert [one.step for one in of_loader] == list(range(7))
    # Models are looked for from the first backward pass on.
    assert [one.samples for one in given if one.stream == "model 0"] == [5, 5, 5, 5, 5, 2]
    assert len({one.checksum for one in given}) == 13


def test_evaluation_is_not_training_on_what_the_model_is_given(
    torch: Any, jobs: Any, noted: Noted
) -> None:
    model = jobs.Net()
    jobs.train(model, steps=2)
    before = len(noted.structure.given)
    with torch.no_grad():
        model(jobs.batch()[0])
    assert len(noted.structure.given) == before


def test_weights_that_the_script_updates_itself(torch: Any, jobs: Any, noted: Noted) -> None:
    model = jobs.Net()
    for moves in (True, True, False, True, True):
        backward(jobs, model)
        for weight in model.parameters():
            if moves:
                weight.data -= 0.1 * weight.grad
            weight.grad = None
    # The first model call is not seen, and the last update is over only when the model is called.
    assert [step.moved for step in noted.steps] == [True, True, False, True]
    assert {step.passes for step in noted.steps} == {1}


def test_each_argument_of_a_model_is_a_stream_by_itself(torch: Any, noted: Noted) -> None:
    """The state of a recurrent network depends on its weights; the data beside it does not."""
    model = torch.nn.GRU(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    state = torch.zeros(1, 2, 3)
    for _ in range(3):
        output, state = model(torch.ones(4, 2, 3), state.detach())
        output.sum().backward()
        optimizer.step()
    checksums: dict[str, set[str]] = {}
    for given in noted.structure.given:
        checksums.setdefault(given.stream, set()).add(given.checksum)
    assert len(checksums["model 0, argument 1"]) == 1
    assert len(checksums["model 0, argument 2"]) == 2


def test_what_a_loop_of_ours_gives_its_model_is_summed_up_by_the_step(
    torch: Any, noted: Noted
) -> None:
    from hotloop.runtime.owned.loop import Loop
    from tests.runtime.owned.jobs import Plain

    def by_step(size: int) -> list[Any]:
        job = Plain()
        job.microbatch = size
        Loop(torch, job).train()
        found = list(noted.structure.by_step)
        noted.structure.by_step.clear()
        noted.structure.steps.clear()
        return [(one.step, one.samples, one.checksum) for one in found if one.step > 5]

    whole, split = by_step(8), by_step(3)  # models are known from the second on
    assert whole == split
    assert [samples for _, samples, _ in whole] == [2, 8, 8, 8, 8, 8, 8, 2]


def test_a_thread_that_loads_ahead_is_left_out(jobs: Any, noted: Noted) -> None:
    """How far it is when a step ends is chance. What the model gets is not."""
    ahead = threading.Thread(target=list, args=(jobs.loader(),))
    ahead.start()
    ahead.join()
    jobs.train(jobs.Net(), steps=2)
    assert {given.stream for given in noted.structure.given} == {"model 0"}
