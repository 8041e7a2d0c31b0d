"""The trials that show whether a plan does the same training, each run once and used often."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

from hotloop.equivalence.judge import (
    Equivalence,
    Witnesses,
    factor_for,
    judge,
    nothing_to_compare,
    together,
)
from hotloop.equivalence.structure import exact_streams
from hotloop.levers.registry import LEVERS
from hotloop.measurement import Measurement
from hotloop.plan import LeverSetting, Plan
from hotloop.trial.spec import Exam
from hotloop.trial.trial import State, Trial
from hotloop.workshop.exam_steps import optimizer_steps, steps_made
from hotloop.workshop.mantissas import mantissa, own_mantissa
from hotloop.workshop.room import ALL, Asked, Host, share, this_host
from hotloop.workshop.weights import MOST_KEPT, WeightsGone, clear, size
from hotloop.workshop.workshop import Workshop

POINTS = (0.60, 0.68, 0.76, 0.84, 0.92)
"""Where steps are compared by arithmetic. Before the first the training runs free."""
LARGE = 50_000_000
"""Parameters."""
SEEDS = (1, 2)
IN_HOST_MEMORY = " kept in host memory"
UNKNOWN = "of-an-earlier-hotloop"
"""The name of weights, where a study does not tell it yet: they are not kept any more."""
T = TypeVar("T")


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
        return min(self.own_bits, *(mantissa(one.lever) or self.own_bits for one in plan.levers))

    def _keep(self, plan: Plan, found: Equivalence) -> None:
        self._equivalences[repr(plan.levers)] = plan, found

    def is_able(self) -> bool:
        """Whether what plans are compared with can be examined itself, and with noise."""
        if self.reference.state is not State.COMPLETE:
            return False
        self.baseline = self.reference.measurement or self.baseline
        yardstick = self._from_weights(lambda: self._yardstick(self.own_bits))
        return yardstick.state is State.COMPLETE

    def is_blind(self) -> bool:
        """Whether no two runs can be compared: what models are given depends on their weights."""
        yardstick = self._yardsticks.get(self.own_bits)
        then, noisy = self.reference.evidence, yardstick.evidence if yardstick else None
        if then is None or noisy is None or not then.structure.given:
            return False
        return not exact_streams(then.structure, noisy.structure)

    def beginning(self) -> Trial:
        """The job as it is, as far as it comes before it runs out of memory."""
        exam = replace(self._exam(is_reference=True), is_reference=False, forced=())
        return self.workshop.examined(Plan(), exam, "beginning")

    def close(self, goes_on: bool = False) -> None:
        """Weights are large, and have served their purpose; unless a search ran out of time, and is
        to go on from them. Very large ones are sooner made again than kept for that."""
        if not goes_on or size(self.workshop.folder) > MOST_KEPT:
            clear(self.workshop.folder)

    @cached_property
    def own_bits(self) -> int:
        """Of the coarsest format that the job itself computes in."""
        return own_mantissa(self.baseline)

    @cached_property
    def reference(self) -> Trial:
        return self._next_reference()

    def _next_reference(self) -> Trial:
        """Again where the job ended before: what is compared lies towards the end of the steps."""
        found = self._run(self.start, self._exam(is_reference=True), "reference")
        if (made := steps_made(found)) and made < self._exam(is_reference=True).steps:
            self.steps = max(1, made // optimizer_steps(self.baseline))
            found = self._run(self.start, self._exam(is_reference=True), "reference")
        return found

    def _from_weights(self, ask: Callable[[], T]) -> T:
        """Where one of these trials has to be run, and the weights that it begins from are gone:
        all of them beside a new reference, for evidence is never set beside that of another one.
        What was judged before rests on runs of its own, and stays as it is."""
        while True:
            try:
                return ask()
            except WeightsGone:
                self.reference = self._next_reference()
                self._yardsticks.clear()

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

    def _judged(self, plan: Plan, bits: int) -> Equivalence:
        if self.reference.state is not State.COMPLETE:  # which is all that there is to say
            nothing = Witnesses(self.reference, self.reference)
            return judge(self.reference, nothing, factor_for(bits))
        candidate, witnesses = self._from_weights(lambda: self._witnessed(plan, bits))
        levers = [LEVERS[one.lever] for one in plan.levers]
        regroups = any(lever.regroups for lever in levers)
        hides = any(lever.hides_model for lever in levers)
        return judge(candidate, witnesses, factor_for(bits), regroups, hides)

    def _witnessed(self, plan: Plan, bits: int) -> tuple[Trial, Witnesses]:
        witnesses = Witnesses(self.reference, self._yardstick(bits), self._reseeded())
        return self._run(plan, self._exam(eager_random=self._draws), "candidate"), witnesses

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
        return mantissa(chosen.lever) is None or chosen in self.start.levers

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
        steps = self.steps * optimizer_steps(self.baseline)
        forced = tuple(round(steps * point) for point in self._points)
        own = is_reference or seed
        weights = self.workshop.new_weights() if own else self.reference.tied_to
        return Exam(
            folder=str(self.workshop.folder / (weights or UNKNOWN)),
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
