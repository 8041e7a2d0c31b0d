"""The trials that show whether a plan does the same training, each run once and used often."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

from hotloop.equivalence.judge import (
    Equivalence,
    Witnesses,
    factor_for,
    judge,
    nothing_to_compare,
    together,
)
from hotloop.equivalence.structure import exact_streams
from hotloop.levers.base import Effect
from hotloop.levers.registry import LEVERS
from hotloop.measurement import Measurement
from hotloop.plan import LeverSetting, Plan
from hotloop.timeline import steps as steps_of
from hotloop.trial.spec import Exam
from hotloop.trial.trial import State, Trial
from hotloop.workshop.room import ALL, Asked, Host, share, this_host
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
IN_HOST_MEMORY = " kept in host memory"
FORMATS = {"bfloat16": 7, "float16": 10, "float32": 23, "float64": 52}


@dataclass
class Examiner:
    workshop: Workshop
    baseline: Measurement
    steps: int
    start: Plan = field(default_factory=Plan)
    """What plans are compared with: the job as it is, unless that does not run."""
    divisor: int = 1
    """Batches so many times smaller, on which the job as it is runs."""
    aside: bool = False
    """The job as it is runs with what autograd keeps in the host's memory."""
    tight: bool = False
    """The job has no memory to spare: it is a job that runs out of it."""
    changing: frozenset[str] = frozenset()
    """Optimisations that change the training by their own account, as the user allows."""

    def examine(self, plan: Plan) -> Equivalence:
        """What claims the same arithmetic is held to it by itself, without what rounds coarser."""
        changed = tuple(one.lever for one in plan.levers if one.lever in self.changing)
        plan = self._compared(plan)
        if changed and plan.levers == self.start.levers:
            return nothing_to_compare(changed)
        known = repr(plan.levers)
        if known not in self._equivalences:
            self._keep(plan, self._examined(plan))
        return replace(self._equivalences[known][1], changed=changed)

    @property
    def same(self) -> list[Plan]:
        """Of those that were examined, also as a part of another: which train the same."""
        return [plan for plan, found in self._equivalences.values() if found.same]

    def _examined(self, plan: Plan) -> Equivalence:
        """Of a part that trains otherwise the whole need not be run."""
        exact = self._exact(plan)
        self.run_ahead((exact, plan))
        parts = []
        if exact.levers != self.start.levers:
            known = repr(exact.levers)
            if known not in self._equivalences:
                self._keep(exact, self._said(self._judged(exact, self.own_bits)))
            parts.append(self._equivalences[known][1])
        if exact != plan and all(part.same for part in parts):
            parts.append(self._judged(plan, self._bits(plan)))
        return self._said(together(parts))

    def run_ahead(self, plans: Iterable[Plan]) -> None:
        """What it takes to examine these, side by side where there is room."""
        if self._share() == ALL or self.divisor > 1 or self.tight:
            return
        if self.reference.state is not State.COMPLETE:
            return
        wanted = {repr(one.levers): one for one in map(self._compared, plans)}
        new = [one for known, one in wanted.items() if known not in self._equivalences]
        new = [one for one in new if one.levers != self.start.levers]
        asked = [  # first those that need most room
            (self.start, self._exam(noise_bits=bits), f"yardstick {bits}")
            for bits in dict.fromkeys(map(self._bits, new))
            if bits not in self._yardsticks
        ]
        asked += [(one, self._exam(eager_random=self._draws), "candidate") for one in new]
        seeds = [one for one in SEEDS if one not in self._by_seed]
        asked += [(self.start, self._exam(seed=one), f"reseeded {one}") for one in seeds]
        self.workshop.examine_ahead(
            [
                Asked(plan, exam, why, self._share(bool(exam.noise_bits)))
                for plan, exam, why in asked
            ]
        )

    @cached_property
    def _host(self) -> Host:
        return this_host(self.workshop.record.machine.cores)

    def _share(self, with_noise: bool = False) -> float:
        return share(self._host, self.baseline, with_noise)

    def _compared(self, plan: Plan) -> Plan:
        """Without what changes the training by its own account."""
        return Plan(tuple(one for one in plan.levers if one.lever not in self.changing))

    def _exact(self, plan: Plan) -> Plan:
        return Plan(tuple(one for one in plan.levers if self._is_exact(one)))

    def _bits(self, plan: Plan) -> int:
        """Of the coarsest format that the plan claims, or the job has."""
        return min(self.own_bits, *(_mantissa(one.lever) or self.own_bits for one in plan.levers))

    def _keep(self, plan: Plan, found: Equivalence) -> None:
        self._equivalences[repr(plan.levers)] = plan, found

    def is_able(self) -> bool:
        """Whether what plans are compared with can be examined itself, and with noise."""
        if self.reference.state is not State.COMPLETE:
            return False
        self.baseline = self.reference.measurement or self.baseline
        return self._yardstick(self.own_bits).state is State.COMPLETE

    def is_blind(self) -> bool:
        """Whether no two runs can be compared: what models are given depends on their weights."""
        yardstick = self._yardsticks.get(self.own_bits)
        then, noisy = self.reference.evidence, yardstick.evidence if yardstick else None
        if then is None or noisy is None or not then.structure.given:
            return False
        return not exact_streams(then.structure, noisy.structure)

    def beginning(self) -> Trial:
        """The job as it is, as far as it comes before it runs out of memory."""
        exam = replace(self._exam(), forced=())
        return self.workshop.examined(Plan(), exam, "beginning")

    def close(self) -> None:
        """Weights are large, and have served their purpose."""
        shutil.rmtree(self._folder, ignore_errors=True)

    @cached_property
    def own_bits(self) -> int:
        """Of the coarsest format that the job itself computes in."""
        return own_mantissa(self.baseline)

    @cached_property
    def reference(self) -> Trial:
        """Again where the job ended before: what is compared lies towards the end of the steps."""
        found = self._run(self.start, self._exam(is_reference=True), "reference")
        if (made := _steps_made(found)) and made < self._exam().steps:
            self.steps = max(1, made // _optimizer_steps(self.baseline))
            found = self._run(self.start, self._exam(is_reference=True), "reference")
        return found

    @cached_property
    def _equivalences(self) -> dict[str, tuple[Plan, Equivalence]]:
        return {}

    @cached_property
    def _yardsticks(self) -> dict[int, Trial]:
        return {}

    @cached_property
    def _by_seed(self) -> dict[int, Trial]:
        return {}

    @property
    def _draws(self) -> bool:
        """Whether the model itself draws random numbers."""
        return self.reference.evidence.draws if self.reference.evidence else False

    @cached_property
    def _points(self) -> tuple[float, ...]:
        """Fewer of a large model: its weights and its optimizer's state are saved at each."""
        parameters = sum(one.parameters for one in self.baseline.inventory.optimizers)
        return POINTS if parameters < LARGE else POINTS[::2]

    @cached_property
    def _folder(self) -> str:
        return str(self.workshop.folder / "reference")

    def _judged(self, plan: Plan, bits: int) -> Equivalence:
        witnesses = Witnesses(self.reference, self._yardstick(bits), self._reseeded())
        candidate = self._run(plan, self._exam(eager_random=self._draws), "candidate")
        levers = [LEVERS[one.lever] for one in plan.levers]
        regroups = any(lever.regroups for lever in levers)
        hides = any(lever.hides_model for lever in levers)
        return judge(candidate, witnesses, factor_for(bits), regroups, hides)

    def _reseeded(self) -> tuple[Trial, ...]:
        """Each by itself: when the time is over after the first, that one was not for nothing."""
        for seed in SEEDS:
            if seed not in self._by_seed:
                exam = self._exam(seed=seed)
                self._by_seed[seed] = self._run(self.start, exam, f"reseeded {seed}")
        return tuple(self._by_seed[seed] for seed in SEEDS)

    def _yardstick(self, bits: int) -> Trial:
        if bits not in self._yardsticks:
            exam = self._exam(noise_bits=bits)
            self._yardsticks[bits] = self._run(self.start, exam, f"yardstick {bits}")
        return self._yardsticks[bits]

    def _run(self, plan: Plan, exam: Exam, purpose: str) -> Trial:
        if self.aside and plan.levers == self.start.levers:
            return self.workshop.examined(plan, replace(exam, aside=True), purpose + IN_HOST_MEMORY)
        smaller = f" on 1/{self.divisor} batches" if self.divisor > 1 else ""
        return self.workshop.examined(plan, exam, purpose + smaller, self.divisor)

    def _is_exact(self, chosen: LeverSetting) -> bool:
        """What both sides have is no difference between them."""
        return _mantissa(chosen.lever) is None or chosen in self.start.levers

    def _said(self, found: Equivalence) -> Equivalence:
        """With what it was compared, where that is not the job as it is."""
        if self.divisor > 1:
            return replace(found, against=f"the job as it is on batches of 1/{self.divisor}")
        if self.aside:
            return replace(found, against="the job as it is, kept in host memory")
        if not self.start.is_empty:
            return replace(found, against=" + ".join(one.lever for one in self.start.levers))
        return found

    def _exam(
        self,
        is_reference: bool = False,
        noise_bits: int | None = None,
        eager_random: bool = False,
        seed: int = 0,
    ) -> Exam:
        steps = self.steps * _optimizer_steps(self.baseline)
        forced = tuple(round(steps * point) for point in self._points)
        return Exam(
            folder=self._folder,
            is_reference=is_reference,
            # From other seeds the same weights would mean nothing: it is the free run that counts.
            steps=forced[0] if seed else steps,
            forced=() if seed else forced,
            noise_bits=noise_bits,
            eager_random=eager_random,
            seed=seed,
            at_once=self.tight,
            # Noise in every operation takes memory, which smaller batches leave.
            spare=self.tight and self.divisor == 1,
        )


def steps_for(seconds_a_step: float, baseline: Trial) -> int:
    """STEPS, unless the job is slow, or ends before."""
    affordable = max(LEAST, min(STEPS, int(SECONDS / seconds_a_step)))
    if not baseline.ran_out or baseline.measurement is None:
        return affordable
    return min(affordable, len(steps_of(baseline.measurement.events)))


def _steps_made(trial: Trial) -> int:
    """By a job that came to its own end; 0 of any other."""
    if trial.state is not State.COMPLETE or not trial.ran_out or trial.evidence is None:
        return 0
    return len(trial.evidence.structure.steps)


def own_mantissa(measurement: Measurement) -> int:
    inventory, precision = measurement.inventory, measurement.inventory.precision
    formats = [dtype for model in inventory.models for dtype in model.dtypes]
    if precision.autocast:
        formats.append(precision.autocast)
    bits = min((FORMATS[name] for name in formats if name in FORMATS), default=23)
    convolves = any(model.convolves for model in inventory.models)
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
