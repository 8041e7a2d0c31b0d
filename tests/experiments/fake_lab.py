"""A laboratory without processes: what a case comes to is computed from its settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.diagnose.numbers import Numbers
from hotloop.experiments.base import Case, Measured, Run
from hotloop.experiments.lab import Asked
from hotloop.study import Study, begin
from tests.builders import job, machine, trial

Law = Callable[[Case], Run | str]
"""What a process of this case comes to, or why it failed."""


def run(step: float, batch: int = 8, memory: int = 2**30, once: float = 0.5) -> Run:
    return Run(step, batch / step, memory, once, 1.0)


def usual(case: Case) -> Run:
    """Every optimisation wins a fifth, 16 bits win a quarter; memory grows by the sample."""
    batch = int(case.settings.get("batch_size", 8))
    step = 1e-3 * batch * 0.8 ** len(case.levers)
    step *= 0.75 if case.settings.get("precision", "float32") != "float32" else 1.0
    return run(step, batch, 2**20 * (100 + batch))


class FakeLab:
    def __init__(
        self,
        on_gpu: bool = False,
        law: Law = usual,
        told: dict[str, Any] | None = None,
        **asked: Any,
    ) -> None:
        self.on_gpu = on_gpu
        self.where = "a machine on paper"
        self.asked = Asked(**asked)
        self.cases: list[Case] = []
        self.to_the_end: list[tuple[Case, dict[str, Any]]] = []
        self._law = law
        self._told = (
            {"loss": 2.5, "course": [3.0, 2.5], "mean_difference": 1e-7} if told is None else told
        )

    def measure(self, cases: Sequence[Case], runs: int | None = None) -> list[Measured]:
        self.cases += cases
        return [self._measured(case, runs or self.asked.runs) for case in cases]

    def trained(self, case: Case, **settings: Any) -> dict[str, Any]:
        self.to_the_end.append((case, settings))
        return dict(self._told)

    def profiled(self, case: Case) -> Study:
        record = begin("profile", job(), machine()).with_trial(trial())
        numbers = Numbers(flops_step=4e9, flops_second=4e11, mfu_measured=0.3, intensity=7.0)
        diagnosis = Diagnosis("It computes.", findings=(), checklist=(), numbers=numbers)
        return replace(record, diagnosis=diagnosis)

    def _measured(self, case: Case, runs: int) -> Measured:
        found = self._law(case)
        if isinstance(found, str):
            return Measured(case, (), found)
        return Measured(case, (found,) * runs)
