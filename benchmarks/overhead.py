"""What the probes of `hotloop profile` cost a step.

    python benchmarks/overhead.py [--out FILE]

Separate processes disagree with each other by more than the probes cost, and so do blocks of steps
a second apart. So the probes are switched on and off at random inside one process, step by step:
pairs of neighbouring steps, one with and one without, in random order. The figure is the median of
the pairs' differences over the median step, with a distribution-free interval.

Switching means that the seams have listeners or none. The wrappers stay, because replacing methods
of torch's classes a thousand times makes Python stop caching their attributes; what a wrapper
without listeners costs is measured by itself, times the calls a step makes, and added.

As in a script, the probes are there before the model and its optimizer are built.

On a GPU the job is bound by kernel launches, where the CPU's time counts in full; a job bound by
the GPU hides the probes altogether.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import random
import tempfile
import time
import timeit
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from hotloop.runtime.patches import through
from hotloop.runtime.probes.progress import ProgressProbe
from hotloop.runtime.watching import Watch
from hotloop.seams import Seam, Seams
from hotloop.trial.spec import StopRule


class Job:
    """An ordinary step: a batch from a loader, forward, loss, backward, optimizer."""

    def __init__(self, device: str, layers: int, width: int, batch: int) -> None:
        torch.manual_seed(0)
        self.device = device
        blocks = [nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(layers)]
        self.model = nn.Sequential(*blocks, nn.Linear(width, 10)).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4)
        data = TensorDataset(torch.randn(batch * 64, width), torch.randint(10, (batch * 64,)))
        self.loader = DataLoader(data, batch_size=batch)
        self.batches = self._forever()

    def _forever(self) -> Iterator[Any]:
        while True:
            yield from self.loader

    def step(self) -> None:
        x, y = next(self.batches)
        x, y = x.to(self.device), y.to(self.device)
        loss = nn.functional.cross_entropy(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def sync(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def timed(job: Job) -> float:
    sync(job.device)
    began = time.perf_counter()
    job.step()
    sync(job.device)
    return time.perf_counter() - began


def calibrated(device: str, target_seconds: float) -> tuple[int, int, int]:
    """Layers, width and batch of a job whose step takes about the target on this machine."""
    width, batch = (256, 64) if device == "cpu" else (512, 64)
    layers = 4
    while True:
        job = Job(device, layers, width, batch)
        seconds = min(timed(job) for _ in range(60))
        if seconds >= 0.8 * target_seconds or layers > 400:
            return layers, width, batch
        layers = math.ceil(layers * min(4.0, target_seconds / seconds))


class Switch:
    """Gives the seams their listeners, or takes them away."""

    def __init__(self, seams: Seams) -> None:
        self._seams = seams.all()
        self._kept: list[tuple[list[Any], list[Any]]] = []

    def turn(self, on: bool) -> None:
        """Listeners come and go by themselves too: what is there now is what comes back."""
        if on and self._kept:
            for seam, (before, after) in zip(self._seams, self._kept, strict=True):
                seam.before[:], seam.after[:] = before, after
            self._kept = []
        elif not on and not self._kept:
            self._kept = [(list(seam.before), list(seam.after)) for seam in self._seams]
            for seam in self._seams:
                seam.silence()


def pairs(job: Job, switch: Switch, count: int, seed: int) -> list[tuple[float, float]]:
    """(with, without), each pair in random order."""
    draw = random.Random(seed)
    found = []
    for _ in range(count):
        seconds = {}
        for watched in draw.sample([True, False], 2):
            switch.turn(watched)
            seconds[watched] = timed(job)
        found.append((seconds[True], seconds[False]))
    return found


def wrapper_seconds() -> float:
    """What a call costs more when it passes a seam that nobody listens to."""

    def nothing(x: object) -> None: ...

    wrapped = through(Seam(), nothing)
    plain = min(timeit.repeat(lambda: nothing(None), number=10_000, repeat=20))
    passing = min(timeit.repeat(lambda: wrapped(None), number=10_000, repeat=20))
    return (passing - plain) / 10_000


def root_seconds(job: Job) -> float:
    """A call of an empty model: as the root, while it is looked for by its class."""
    empty, nothing = type(job.model)(), torch.zeros(1)
    return min(timeit.repeat(lambda: empty(nothing), number=1_000, repeat=20)) / 1_000


def median_interval(values: list[float], z: float = 1.96) -> tuple[float, float, float]:
    """Median and a 95% interval from order statistics: no assumption about the noise."""
    ordered = sorted(values)
    n = len(ordered)
    reach = z * math.sqrt(n) / 2
    low = max(0, math.floor(n / 2 - reach))
    high = min(n - 1, math.ceil(n / 2 + reach))
    return ordered[n // 2], ordered[low], ordered[high]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=1500)
    parser.add_argument("--step-ms", type=float, default=10.0)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()

    shape = calibrated(arguments.device, arguments.step_ms / 1e3)
    with tempfile.TemporaryDirectory() as folder:
        probes = Watch(torch)
        optimizers = probes.inventory.numbers["optimizer"]
        never = StopRule(steps=10**9)
        told = f"{folder}/progress"
        progress = ProgressProbe(told, never, math.inf, optimizers, lambda: None, few=2)
        progress.attach(probes.seams)
        probes.driver.attach()
        job = Job(arguments.device, *shape)
        for _ in range(20):
            job.step()  # roots are found
        before = probes.clock.entries
        switch = Switch(probes.seams)
        found = pairs(job, switch, arguments.pairs, arguments.seed)
        switch.turn(True)
        events = (probes.clock.entries - before) / arguments.pairs
        switch.turn(False)
        root = root_seconds(job)
        probes.driver.detach()
        root -= root_seconds(job)
    assert events >= 10, "the probes recorded nothing"
    # Half as many calls as events, and the containers inside the root, which are of its class.
    calls = events / 2 + sum(type(m) is type(job.model) for m in job.model.modules())
    wrappers = calls * wrapper_seconds() + max(root, 0.0)
    step = sorted(seconds for _, seconds in found)[len(found) // 2]
    differences = [(watched - plain + wrappers) / step * 100 for watched, plain in found]
    median, low, high = median_interval(differences)
    result = {
        "device": torch.cuda.get_device_name() if arguments.device == "cuda" else "cpu",
        "torch": torch.__version__,
        "python": platform.python_version(),
        "pairs": len(found),
        "step_ms": step * 1e3,
        "events_a_step": events,
        "wrappers_us": wrappers * 1e6,
        "overhead_percent": {"median": median, "low": low, "high": high},
        "raw_us": [[round(a * 1e6, 1), round(b * 1e6, 1)] for a, b in found],
    }
    print(
        f"step {step * 1e3:.2f} ms, {events:.0f} events a step: probes cost"
        f" {median:+.2f}% [{low:+.2f}, {high:+.2f}], {len(found)} pairs"
    )
    if arguments.out:
        arguments.out.write_text(json.dumps(result) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
