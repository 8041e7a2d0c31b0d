"""Every experiment on a real GPU, in small: each case once, few steps, jobs scaled down.

Processes run many at a time, on as many cores as there are: on sixteen all of it takes two to
four minutes. What it shows is that each experiment comes to its end there, with every optimisation
in effect; figures of so small jobs, side by side, mean nothing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotloop.experiments import flops, loader
from hotloop.experiments.base import FAILED, Case, Measured, Outcome
from hotloop.experiments.lab import Asked, Lab
from hotloop.experiments.registry import EXPERIMENTS
from hotloop.roof import Roof
from hotloop.study import Study
from hotloop.trial.launch import ProcessLauncher

pytestmark = [pytest.mark.gpu, pytest.mark.e2e]

SMALL: dict[str, dict[str, Any]] = {
    "mlp": {"pool": 4096},
    "resnet": {"size": 64, "width": 16, "classes": 10, "pool": 16},
    "gpt": {"layers": 2, "width": 128, "heads": 4, "context": 128, "vocabulary": 520, "pool": 16},
    "unet": {"volume": 32, "width": 8, "levels": 3, "pool": 4},
}
"""Settings of each module's jobs, whatever an experiment asks for."""
ASKED: dict[str, dict[str, Any]] = {
    "accumulation": {"batch_size": 4},
    "best": {"precision": "bfloat16"},
    "scaling": {"batch_size": 2},
}
AGREEING = {"accumulation", "fusion"}
"""Which say whether the same was learnt."""
ROOF = Roof(device="a GPU on paper", matrix_flops={"float32": 5e13, "tf32": 4e14, "bfloat16": 7e14},
            memory_bandwidth=4e12)  # fmt: skip


class SmallLab(Lab):
    """A real one, with real processes: several at a time, and of smaller jobs."""

    def __init__(self, name: str, folder: Path, pool: ThreadPoolExecutor) -> None:
        asked = Asked(runs=1, steps=4, timeout=100.0, **ASKED.get(name, {}))
        self._made = (sys.executable, "cuda", "a GPU, in small", asked)
        super().__init__(*self._made, folder, ProcessLauncher(), _unwatched, lambda: ROOF)
        self._pool, self._place, self._count = pool, folder, 0

    def measure(self, cases: Sequence[Case], runs: int | None = None) -> list[Measured]:
        return [future.result() for future in [self._begin(case) for case in cases]]

    def trained(self, case: Case, **settings: Any) -> dict[str, Any]:
        return super().trained(_small(case), **settings)

    def profiled(self, case: Case) -> Study:
        return super().profiled(_small(case))

    def _begin(self, case: Case) -> Future[Measured]:
        """A laboratory counts its trials: each case has one of its own."""
        self._count += 1
        place = self._place / f"case-{self._count}"
        one = Lab(*self._made, place, ProcessLauncher(), _unwatched)
        return self._pool.submit(lambda: replace(one.measure([_small(case)], 1)[0], case=case))


def _small(case: Case) -> Case:
    settings = SMALL[case.workload.partition(":")[0]]
    return replace(case, settings={**case.settings, **settings})


def _unwatched(glimpse: object) -> None: ...


@pytest.fixture(scope="module")
def outcomes(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Outcome]]]:
    """Of those that the chosen tests are about."""
    if not pytest.importorskip("torch").cuda.is_available():
        pytest.skip("there is no GPU")
    with (
        pytest.MonkeyPatch.context() as patch,
        ThreadPoolExecutor(os.cpu_count() or 1) as processes,
        ThreadPoolExecutor(len(EXPERIMENTS)) as pool,
    ):
        loaders = [(0, 2, False), (2, 2, False), (2, 4, True)]
        patch.setattr(loader, "_grid", lambda on_gpu: loaders)
        patch.setattr(flops, "ON_GPU", (flops.ON_GPU[0], flops.ON_GPU[3]))

        def run(name: str, folder: Path) -> Outcome:
            return EXPERIMENTS[name]().run(SmallLab(name, folder, processes))

        chosen = {item.name.partition("[")[2].rstrip("]") for item in request.session.items}
        if "" in chosen:
            chosen |= AGREEING
        names = [name for name in EXPERIMENTS if name in chosen]
        folders = {name: tmp_path_factory.mktemp(name) for name in names}  # not in threads
        yield {name: pool.submit(run, name, folder) for name, folder in folders.items()}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_comes_to_its_end(name: str, outcomes: dict[str, Future[Outcome]]) -> None:
    found = outcomes[name].result()
    assert {one.case.label: one.reason for one in found.measured if not one.ran} == {}
    if name != "flops":  # what a look into so small a job cannot tell is a dash there
        assert [row for row in found.rows if FAILED in row] == []
    assert any(series.points for series in found.figure.series), found.notes
    for told in (found.data.get("weights"), found.data.get("losses")):
        for one in told.values() if isinstance(told, dict) else told or ():
            assert "reason" not in one


def test_weights_agree(outcomes: dict[str, Future[Outcome]]) -> None:
    accumulation, fusion = (outcomes[name].result() for name in sorted(AGREEING))
    assert {row[-1] for row in fusion.rows[1:]} == {"yes"}
    assert "All learn the same" in accumulation.notes[0]
