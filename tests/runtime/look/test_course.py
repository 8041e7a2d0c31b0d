from __future__ import annotations

from typing import Any

import pytest

from hotloop.inspection import StepMemory
from hotloop.runtime.look.course import MOST_POINTS, MemoryCourse
from hotloop.runtime.look.operators import OperatorProbe

BATCH, WIDE = 16, 64


def followed(torch: Any, step: Any, models: list[Any], optimizers: list[Any]) -> StepMemory:
    course = MemoryCourse(torch)
    probe = OperatorProbe(torch, course)
    course.begin(models, optimizers)
    probe.begin()
    step()
    probe.end(1)
    found = course.end()
    assert found is not None
    return found


@pytest.fixture
def job(torch: Any) -> tuple[Any, Any, Any]:
    model = torch.nn.Sequential(torch.nn.Linear(WIDE, WIDE), torch.nn.Tanh())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step() -> None:
        optimizer.zero_grad()
        model(torch.ones(BATCH, WIDE)).sum().backward()
        optimizer.step()

    step()
    return model, optimizer, step


def test_each_kind_comes_and_goes_when_it_should(torch: Any, job: Any) -> None:
    model, optimizer, step = job
    found = followed(torch, step, [model], [optimizer])
    weights = (WIDE * WIDE + WIDE) * 4
    assert set(found.weights) == {weights}
    assert set(found.optimizer) == {weights}
    assert found.gradients[0] == weights  # of the step before
    forward = [at for at, phase in enumerate(found.phase) if phase == "forward"]
    assert 0 in [found.gradients[at] for at in forward]  # after zero_grad()
    assert found.gradients[-1] == weights
    activations = BATCH * WIDE * 4
    assert max(found.activations) >= activations  # what tanh keeps of its result
    assert found.activations[0] == 0 and found.activations[-1] < activations
    assert found.device == "cpu"


def test_the_whole_is_never_less_than_its_parts(torch: Any, job: Any) -> None:
    model, optimizer, step = job
    found = followed(torch, step, [model], [optimizer])
    parts = zip(found.weights, found.gradients, found.optimizer, found.activations, strict=True)
    assert all(sum(each) <= total for each, total in zip(parts, found.total, strict=True))
    assert found.operator == sorted(found.operator) and found.operators == found.operator[-1]


def test_what_a_block_computes_again_is_an_activation(torch: Any) -> None:
    from torch.utils.checkpoint import checkpoint

    inner = torch.nn.Sequential(*(torch.nn.Linear(WIDE, WIDE) for _ in range(4)))

    def step() -> None:
        given = torch.ones(BATCH, WIDE, requires_grad=True)
        checkpoint(inner, given, use_reentrant=False).sum().backward()

    found = followed(torch, step, [inner], [])
    again = [
        size
        for size, phase in zip(found.activations, found.phase, strict=True)
        if phase == "backward"
    ]
    assert max(again) >= 3 * BATCH * WIDE * 4


def test_a_step_of_many_operators_keeps_its_highest_point(torch: Any) -> None:
    model = torch.nn.Linear(4, 4)

    def step() -> None:
        for _ in range(3 * MOST_POINTS):
            torch.ones(4)
        spike = torch.ones(1_000_000)
        del spike
        for _ in range(MOST_POINTS):
            torch.ones(4)

    found = followed(torch, step, [model], [])
    assert len(found.total) <= MOST_POINTS + 2
    assert max(found.total) >= 4_000_000 > found.total[-1]


def test_hooks_are_taken_away(torch: Any, job: Any) -> None:
    model, optimizer, step = job
    followed(torch, step, [model], [optimizer])
    assert all(not parameter._post_accumulate_grad_hooks for parameter in model.parameters())


def test_nothing_to_follow(torch: Any) -> None:
    course = MemoryCourse(torch)
    course.begin([torch.nn.ReLU()], [])
    course.see([torch.ones(3)], "forward", True)
    assert course.end() is None


class FakeCuda:
    """An allocator that has handed out more than is followed."""

    def __init__(self, course: MemoryCourse) -> None:
        self._course = course

    def memory_allocated(self, device: Any) -> int:
        return sum(self._course._held) + 12_345


def test_on_a_gpu_the_allocator_says_how_much_it_is(torch: Any, job: Any) -> None:
    model, _, _ = job

    class FakeTorch:
        Tensor = torch.Tensor

    class FakeDevice:
        type = "cuda"

    course = MemoryCourse(FakeTorch)
    FakeTorch.cuda = FakeCuda(course)  # type: ignore[attr-defined]
    course.begin([model], [])
    course._device = FakeDevice()
    course.see([], "forward", True)
    found = course.end()
    assert found is not None
    assert found.total[-1] == found.weights[-1] + found.gradients[-1] + 12_345


@pytest.mark.gpu
def test_on_a_gpu(torch: Any) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no GPU")
    model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.Tanh()).cuda()
    optimizer = torch.optim.AdamW(model.parameters())

    def step() -> None:
        optimizer.zero_grad()
        model(torch.ones(512, 1024, device="cuda")).sum().backward()
        optimizer.step()

    step()
    found = followed(torch, step, [model], [optimizer])
    parts = zip(found.weights, found.gradients, found.optimizer, found.activations, strict=True)
    assert found.device.startswith("cuda")
    assert all(sum(each) <= total for each, total in zip(parts, found.total, strict=True))
    assert max(found.activations) >= 512 * 1024 * 4
    assert max(found.total) <= torch.cuda.max_memory_allocated()
