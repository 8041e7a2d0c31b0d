"""The trials that show whether a plan does the same training, each run once and used often."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cached_property

from hotloop.equivalence.judge import Equivalence, Witnesses, factor_for, judge, together
from hotloop.levers.base import Effect
from hotloop.levers.registry import LEVERS
from hotloop.measurement import Measurement
from hotloop.plan import Plan
from hotloop.timeline import steps as steps_of
from hotloop.trial.spec import Exam
from hotloop.trial.trial import Trial
from hotloop.workshop.workshop import Workshop

STEPS = 60
SECONDS = 60.0
"""A slow job is looked at for fewer steps, but not for fewer than LEAST."""
LEAST = 40
POINTS = (0.60, 0.68, 0.76, 0.84, 0.92)
"""Where steps are compared by arithmetic. Before the first the training runs free."""
LARGE = 50_000_000
"""Parameters."""
SEEDS = (1, 2)
FORMATS = {"bfloat16": 7, "float16": 10, "float32": 23, "float64": 52}


@dataclass
class Examiner:
    workshop: Workshop
    baseline: Measurement
    steps: int

    def examine(self, plan: Plan) -> Equivalence:
        """What claims the same arithmetic is held to it by itself, without what rounds coarser."""
        exact = Plan(tuple(one for one in plan.levers if _mantissa(one.lever) is None))
        parts = []
        if not exact.is_empty:
            parts.append(self._judged(exact, self.own_bits))
        if exact != plan:
            coarsest = min(_mantissa(one.lever) or self.own_bits for one in plan.levers)
            parts.append(self._judged(plan, min(coarsest, self.own_bits)))
        return together(parts)

    def close(self) -> None:
        """Weights are large, and have served their purpose."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @cached_property
    def own_bits(self) -> int:
        """Of the coarsest format that the job itself computes in."""
        return own_mantissa(self.baseline)

    @cached_property
    def reference(self) -> Trial:
        return self.workshop.examined(Plan(), self._exam(is_reference=True), "reference")

    @cached_property
    def _yardsticks(self) -> dict[int, Trial]:
        return {}

    @cached_property
    def _reseeded(self) -> tuple[Trial, ...]:
        return tuple(
            self.workshop.examined(Plan(), self._exam(seed=seed), f"reseeded {seed}")
            for seed in SEEDS
        )

    @cached_property
    def _points(self) -> tuple[float, ...]:
        """Fewer of a large model: its weights and its optimizer's state are saved at each."""
        parameters = sum(one.parameters for one in self.baseline.inventory.optimizers)
        return POINTS if parameters < LARGE else POINTS[::2]

    @cached_property
    def _folder(self) -> str:
        return str(self.workshop.folder / "reference")

    def _judged(self, plan: Plan, bits: int) -> Equivalence:
        witnesses = Witnesses(self.reference, self._yardstick(bits), self._reseeded)
        draws = self.reference.evidence.draws if self.reference.evidence else False
        candidate = self.workshop.examined(plan, self._exam(eager_random=draws), "candidate")
        regroups = any(LEVERS[one.lever].regroups for one in plan.levers)
        return judge(candidate, witnesses, factor_for(bits), regroups)

    def _yardstick(self, bits: int) -> Trial:
        if bits not in self._yardsticks:
            exam = self._exam(noise_bits=bits)
            trial = self.workshop.examined(Plan(), exam, f"yardstick {bits}")
            self._yardsticks[bits] = trial
        return self._yardsticks[bits]

    def _exam(
        self,
        is_reference: bool = False,
        noise_bits: int | None = None,
        eager_random: bool = False,
        seed: int = 0,
    ) -> Exam:
        steps = self.steps * _optimizer_steps(self.baseline)
        return Exam(
            folder=self._folder,
            is_reference=is_reference,
            steps=steps,
            # From other seeds the same weights would mean nothing.
            forced=() if seed else tuple(round(steps * point) for point in self._points),
            noise_bits=noise_bits,
            eager_random=eager_random,
            seed=seed,
        )


def steps_for(seconds_a_step: float, baseline: Trial) -> int:
    """STEPS, unless the job is slow, or ends before."""
    affordable = max(LEAST, min(STEPS, int(SECONDS / seconds_a_step)))
    if not baseline.ran_out or baseline.measurement is None:
        return affordable
    return min(affordable, len(steps_of(baseline.measurement.events)))


def own_mantissa(measurement: Measurement) -> int:
    inventory, precision = measurement.inventory, measurement.inventory.precision
    formats = [dtype for model in inventory.models for dtype in model.dtypes]
    if precision.autocast:
        formats.append(precision.autocast)
    bits = min((FORMATS[name] for name in formats if name in FORMATS), default=23)
    convolves = any(model.convolutions for model in inventory.models)
    has_tf32 = precision.tf32_matmul or (precision.tf32_cudnn and convolves)
    on_gpu = measurement.software.device != "cpu"
    return min(bits, 10) if on_gpu and has_tf32 else bits


def _mantissa(lever: str) -> int | None:
    kind = LEVERS[lever]
    return kind.mantissa if kind.effect is Effect.LOWER_PRECISION else None


def _optimizer_steps(measurement: Measurement) -> int:
    """Of all optimizers, for each step of the job."""
    steps = [one.steps for one in measurement.inventory.optimizers]
    return max(1, round(sum(steps) / max(steps))) if steps else 1
