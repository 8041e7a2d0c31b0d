"""A job in this process, whose steps are told to a trial's profilers as a child would tell them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotloop.depth import DepthReport
from hotloop.runtime.deep.deepening import Deepening
from hotloop.runtime.deep.functions import MIXED
from hotloop.runtime.watching import Watch
from hotloop.trial.spec import Deep

DEEP = Deep("python", "", warm_up=6, steps=4, seconds=0.05, most_seconds=60.0)


def problems(report: DepthReport) -> list[str]:
    """But for what Python 3.12 sees of threads that other tests have left in this process."""
    return [one for one in report.problems if one != MIXED]


class Training:
    """More steps to warm up than discovery takes: models are known then."""

    def __init__(self, torch: Any, deep: Deep) -> None:
        self.watch = Watch(torch)
        self.deepening = Deepening(torch, self.watch, deep)
        self.deepening.attach()
        self.watch.driver.attach()
        self.made = 0
        self._report: DepthReport | None = None

    def until_seen(self, step: Callable[[], None], most: int = 5000) -> DepthReport:
        """What is seen until enough is, or the script ends."""
        for _ in range(most):
            step()
            self.made += 1
            if self.deepening.satisfied(self.made - 1, 0.0):
                break
        return self.report()

    def report(self) -> DepthReport:
        if self._report is None:
            self._report = self.deepening.report()
            self.watch.driver.detach()
        return self._report


Train = Callable[..., Training]


@pytest.fixture
def train(torch: Any, unharmed: None, tmp_path: Path) -> Iterator[Train]:
    made: list[Training] = []

    def begin(kind: str, **changes: Any) -> Training:
        deep = replace(DEEP, kind=kind, folder=str(tmp_path), **changes)
        made.append(Training(torch, deep))
        return made[-1]

    yield begin
    for one in made:
        one.report()


@pytest.fixture
def step(jobs: Any) -> Callable[[], None]:
    """One of an ordinary model."""
    model = jobs.Net()
    optimizer = jobs.sgd(model)

    def step() -> None:
        x, y = jobs.batch()
        optimizer.zero_grad()
        jobs.plain_loss(model, x, y).backward()
        optimizer.step()

    return step
