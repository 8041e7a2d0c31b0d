"""Augmentation moved to the device. Where there is no GPU a fake lever takes the host for one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from hotloop.levers.gpu_augment import GpuAugment
from hotloop.measurement import LoopSeen, Software
from tests import builders
from tests.levers.test_microbatch import trained


@dataclass
class FakeGpuAugment(GpuAugment):
    """As if the host were a device of its own."""

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        args[0].augments_here = True


@pytest.fixture
def halving(owned: Any) -> Any:
    class Halving(owned.Plain):  # type: ignore[misc]
        given: ClassVar[list[int]] = []

        def data(self) -> Any:
            return owned.Squares()

        def augment(self, inputs: Any) -> Any:
            self.given.append(len(inputs))
            return inputs / 2

    return Halving


def test_the_same_training_a_batch_at_a_time(jobs: Any, owned: Any, halving: Any) -> None:
    plain = owned.weights(trained(jobs, halving))
    assert set(halving.given) == {1}
    halving.given.clear()
    lever = FakeGpuAugment()
    planned = owned.weights(trained(jobs, halving, lever))
    assert all(map(jobs.torch.equal, plain, planned))
    assert set(halving.given) == {8, 2}
    assert lever.receipt().evidence == {"batches": 14}


def test_a_job_that_declares_none(jobs: Any, owned: Any) -> None:
    lever = FakeGpuAugment()
    trained(jobs, owned.Plain, lever)
    assert lever.receipt().reason == "the job declares no augmentation"


def test_on_a_cpu_nothing_is_moved(jobs: Any, halving: Any) -> None:
    lever = GpuAugment()
    trained(jobs, halving, lever, device="cpu")
    assert "is the one that loads" in lever.receipt().reason
    assert set(halving.given) == {1}


def test_a_scripts_own_loop_is_left_alone(jobs: Any) -> None:
    lever = GpuAugment()
    with jobs.under(lever):
        jobs.train()
    assert lever.receipt().reason == "the loop is the script's own"


@pytest.mark.parametrize(
    ("loop", "device", "reason"),
    [
        (None, builders.GPU, "hotloop's own loop"),
        (LoopSeen(8, 8), builders.GPU, "declares no augmentation"),
        (LoopSeen(8, 8, augments=True), "cpu", "is the one that loads"),
        (LoopSeen(8, 8, augments=True), builders.GPU, ""),
    ],
)
def test_where_it_could_help(loop: LoopSeen | None, device: str, reason: str, jobs: Any) -> None:
    measured = replace(builders.measurement(), software=Software(device=device))
    expected = GpuAugment.expected(jobs.seen(measurement=measured, loop=loop))
    assert reason in expected.reason and expected.is_worth_trying == (not reason)


@pytest.mark.gpu
def test_on_a_gpu_inputs_are_augmented_there(jobs: Any, halving: Any) -> None:
    if not jobs.torch.cuda.is_available():
        pytest.skip("there is no GPU")
    seen: list[str] = []

    class Watched(halving):  # type: ignore[misc]
        def augment(self, inputs: Any) -> Any:
            seen.append(inputs.device.type)
            return super().augment(inputs)

    lever = GpuAugment()
    trained(jobs, Watched, lever, device="cuda")
    assert lever.receipt().applied and set(seen) == {"cuda"}
