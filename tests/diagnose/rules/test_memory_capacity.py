from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.memory_capacity import memory_capacity
from hotloop.measurement import Memory
from tests.diagnose.gpu_making import case

GIB = 2**30


def using(memory: Memory) -> Case:
    made = case(lambda scene: scene.log.step())
    return replace(made, measurement=replace(made.measurement, memory=memory))


def test_a_full_gpu_is_a_remark() -> None:
    found = memory_capacity(using(Memory(None, 60 * GIB, 75 * GIB, 80 * GIB)))
    assert found is not None
    assert not found.is_limit and found.share == 0
    assert found.title == "94% of the GPU's memory is taken"
    assert found.evidence == (
        "75.0 GiB of 80.0 GiB were reserved at the peak",
        "60.0 GiB of them were in use",
    )


@pytest.mark.parametrize(
    "memory",
    [Memory(None, 60 * GIB, 70 * GIB, 80 * GIB), Memory(), Memory(None, None, None, 80 * GIB)],
)
def test_room_or_nothing_known(memory: Memory) -> None:
    assert memory_capacity(using(memory)) is None
