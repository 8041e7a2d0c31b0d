"""The example of tiny microbatches, from a search that fuses them to a training under its plan."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.e2e.conftest import TORCH, Desk, Ended
from tests.sources import ROOT

pytestmark = pytest.mark.e2e

EXAMPLE = (ROOT / "examples" / "tiny_microbatches.py").read_text(encoding="utf-8")
SIZES = ("batch_size=256", "microbatch=8", "rows=2700")
QUICK = ("--no-look", "--steps", "10", "--only", "microbatch")

PROGRAM = """\
import json
import hotloop
from jobs import TinyMicrobatches

passes = []

class Counted(TinyMicrobatches):
    batch_size, microbatch, rows, epochs = 256, 8, 2700, 2

    def loss(self, model, batch):
        passes.append(len(batch[0]))
        return super().loss(model, batch)

def trained(plan):
    passes.clear()
    model = hotloop.train(Counted, plan=plan, quiet=True).model
    return [weight.detach() for weight in model.parameters()], list(passes)

(before, small), (after, large) = trained(None), trained("hotloop.json")
apart = max(float((one - other).abs().max()) for one, other in zip(before, after))
print(json.dumps({"small": small, "large": large, "apart": apart}))
"""


class Story:
    def __init__(self, desk: Desk) -> None:
        # Two threads would wait for each other where both cores are busy.
        desk.env["OMP_NUM_THREADS"] = "1"
        desk.write(TORCH + EXAMPLE, "jobs.py")
        desk.write(PROGRAM, "program.py")
        words = ("optimize", "--json", *QUICK, "jobs.py:TinyMicrobatches", *SIZES)
        self.searched: Ended = desk.hotloop(*words)
        self.told: Any = json.loads(self.searched.out)
        self.trials: Any = desk.study()["trials"]
        self.trained: Ended = desk.python("program.py")


@pytest.fixture(scope="module")
def story(shared_desk: Desk) -> Story:
    return Story(shared_desk)


def test_the_search_tries_passes_and_proves_that_one_is_faster(story: Story) -> None:
    assert story.searched.code == 0, story.searched
    tried = [one["plan"]["levers"] for one in story.trials if one["purpose"] == "screen"]
    sizes = [[chosen["setting"]["size"] for chosen in levers] for levers in tried]
    assert sizes == [[0], [45]]  # the whole batch, and half of the way there
    proof = [one["plan"]["levers"] for one in story.trials if one["purpose"] == "proof"]
    planned = story.told["plan"]["levers"]
    assert [chosen["lever"] for chosen in planned] == ["microbatch"]
    assert proof.count([]) == proof.count(planned) == story.told["ratio"]["pairs"] >= 5
    assert story.told["ratio"]["low"] > 1


def test_it_is_the_same_training_and_survives_a_soak(story: Story) -> None:
    assert story.told["equivalence"]["same"], story.told["equivalence"]
    assert story.told["equivalence"]["forced"] > 0
    assert story.told["soak"]["passed"]
    assert {"a second epoch", "the last, short batch"} <= {*story.told["soak"]["met"]}


def test_a_program_trains_under_the_plan(story: Story) -> None:
    assert story.trained.code == 0, story.trained
    told = json.loads(story.trained.out)
    assert told["small"] == [8] * (2600 // 8) * 2
    chosen = story.told["plan"]["levers"][0]["setting"]["size"] or 256
    assert told["large"][0] == chosen > 8 and sum(told["large"]) == 2600 * 2
    assert told["apart"] < 1e-4
