"""A job without memory for its batch is made to run, and then trains for real.

The GPU is pretended by the script itself, which counts what autograd keeps between the two passes.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.conftest import Desk

pytestmark = pytest.mark.e2e

SCRIPT = """\
import sys, torch
from torch import nn

room, steps, held = int(sys.argv[1]), int(sys.argv[2]), 0
torch.manual_seed(0)
torch.set_num_threads(1)

def keep(tensor):
    global held
    held += tensor.nbytes
    if held > room:
        raise torch.OutOfMemoryError(f"CUDA out of memory, pretended: {held} bytes")
    return tensor

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 8), nn.Dropout(0.1))
    def forward(self, x):
        return x + self.mlp(x)

model = nn.Sequential(*(Block() for _ in range(8)), nn.Linear(8, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(steps):
    x, y, held = torch.randn(64, 8), torch.randint(0, 3, (64,)), 0
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
print("trained", step + 1)
"""
ROOM = "150000"
"""Bytes: half of the blocks must not keep what is inside them."""
JOB = ("train.py", ROOM, "1000000")
QUICK = ("--no-look", "--steps", "10", "--only", "checkpoint_blocks")


class Story:
    def __init__(self, desk: Desk) -> None:
        desk.write(SCRIPT)
        self.rescued = desk.hotloop("optimize", "--objective", "memory", "--json", *QUICK, *JOB)
        words = ("--anyway", "--plan", "hotloop.json", "train.py", ROOM, "30")
        self.trained = desk.hotloop("run", *words)

    @property
    def told(self) -> Any:
        return json.loads(self.rescued.out)


@pytest.fixture(scope="module")
def story(shared_desk: Desk) -> Story:
    return Story(shared_desk)


def test_for_memory_it_is_made_to_run(story: Story) -> None:
    assert story.rescued.code == 0, story.rescued
    assert [one["lever"] for one in story.told["plan"]["levers"]] == ["checkpoint_blocks"]
    assert story.told["plan"]["at_once"] is True
    assert story.told["rescue"]["tried"][-1]["ran"] is True


def test_what_was_not_compared_is_not_claimed(story: Story) -> None:
    """Its batches are drawn by hand: there is no smaller job to compare with."""
    assert story.told["equivalence"] is None
    assert "the same training is not shown" in story.told["verdict"]
    assert story.told["rescue"]["shown"] == [
        "its beginning, as far as it comes: 1 batch by checksum, 0 steps"
    ]


def test_under_the_plan_it_trains_where_it_died_before(story: Story) -> None:
    assert "memory was exhausted before its first training step" in story.told["rescue"]["ended"]
    assert story.trained.code == 0, story.trained
    assert story.trained.out == "trained 30\n"
