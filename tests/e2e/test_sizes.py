"""A batch size is searched for on a device whose memory ends, early or late in a training."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import Desk

pytestmark = pytest.mark.e2e

JOB = """\
import time, torch
from torch import nn
import hotloop

class Sized(hotloop.TrainingJob):
    batch_size = 16
    epochs = 200
    full = 64
    runs_out = 12
    real = False

    def model(self):
        self.calls, self.kept = 0, []
        if self.real:
            torch.cuda.set_per_process_memory_fraction(0.01)
        else:
            torch.set_num_threads(1)
        return nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))

    def data(self):
        return torch.randn(4096, 64), torch.randint(10, (4096,))

    def loss(self, model, batch):
        self.calls += 1
        if len(batch[0]) >= self.full and self.calls >= self.runs_out:
            if not self.real:
                raise torch.OutOfMemoryError("CUDA out of memory, pretended")
            while True:
                self.kept.append(torch.empty(2**28, device="cuda"))
        size = len(batch[0])  # no other is faster: there is nothing to prove
        time.sleep((16 if size <= 16 else 1.5 * size) / 2000)
        return nn.functional.cross_entropy(model(batch[0]), batch[1])

    def optimizer(self, parameters):
        return torch.optim.SGD(parameters, lr=0.1)
"""
SEARCH = ("--steps", "10", "--no-look", "--only", "batch_size", "--effect", "changes_training")


def found(desk: Desk, *settings: str) -> Any:
    desk.env["OMP_NUM_THREADS"] = "1"
    desk.write(JOB, "jobs.py")
    ended = desk.hotloop("optimize", *SEARCH, "jobs.py:Sized", *settings)
    assert ended.code == 0, ended
    return desk.study()


def check(study: Any) -> None:
    points = {point["size"]: point for point in study["found"]["sizes"]["points"]}
    failed = {size for size, point in points.items() if point["rate"] is None}
    assert 64 in failed and all("memory was exhausted" in points[one]["reason"] for one in failed)
    ran = {size for size in points if size not in failed}
    assert {16, 32} <= ran and max(ran) < 64
    screens = [trial for trial in study["trials"] if trial["purpose"] == "screen"]
    states = {trial["plan"]["levers"][0]["setting"]["size"]: trial["state"] for trial in screens}
    assert {size for size, state in states.items() if state == "complete"} == ran - {16}
    if plan := study["found"]["plan"]:
        assert plan["levers"][0]["setting"]["size"] in ran


def test_a_size_that_runs_out_of_memory_after_many_steps_is_survived(desk: Desk) -> None:
    check(found(desk))


@pytest.mark.gpu
@pytest.mark.parametrize("runs_out", [1, 12], ids=["at the first step", "after many"])
def test_on_a_gpu_whose_memory_really_ends(runs_out: int, desk: Desk) -> None:
    if not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("there is no GPU")
    check(found(desk, "real=true", f"runs_out={runs_out}"))
