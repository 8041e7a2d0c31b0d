"""A job that runs out of memory as it is: what makes it run, and what can then be known of it.

There is no run of the job as it is that a plan could be compared with. Where its loaders can be
told to build smaller batches, there is one of a smaller job, and everything is compared on that.
Otherwise it may run slowly, with what autograd keeps in the host's memory. If not, the plan that
changes least is what others are compared with; of the job as it is nothing is known but its
beginning, and that is said.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from hotloop.equivalence.beginning import Beginning, beginning
from hotloop.equivalence.judge import Equivalence, is_difference
from hotloop.figures import Figures, training_loader
from hotloop.levers.chunked_loss import ON_CPU, ON_GPU
from hotloop.levers.registry import LEVERS
from hotloop.measurement import Measurement, Software
from hotloop.plan import LeverSetting, Plan
from hotloop.search.candidate import Candidate
from hotloop.search.climb import BudgetSpent
from hotloop.search.interactions import names
from hotloop.search.rescue import PURPOSE, Rescue, Rung, rescue
from hotloop.study import Options, Soaked
from hotloop.trial.spec import Soak
from hotloop.trial.trial import Trial
from hotloop.workshop.exam_steps import steps_for
from hotloop.workshop.examine import Examiner
from hotloop.workshop.footing import Footing, NoPlan
from hotloop.workshop.outlook import Later, after_the_examination
from hotloop.workshop.promising import out_of_bounds
from hotloop.workshop.soak import soak
from hotloop.workshop.workshop import Workshop

DIVISORS = (2, 4, 8, 16, 32)
"""How many times smaller batches may have to be. Noise in every operation takes memory, too."""
COST = "cost"
IN_FULL = (
    "all that is named here, on whole batches: what the job as it is keeps for its backward passes "
    "lay in host memory, where it runs slowly"
)


def ladder(options: Options, starved: Trial) -> list[Rung]:
    """What makes a job smaller, by what it costs in time and what it changes: the least first."""
    software = starved.measurement.software if starved.measurement else Software()
    on_gpu = software.device != "cpu"
    rungs = [
        *([_rung("allocator")] if on_gpu else []),  # nothing
        _rung("fused_optimizer"),  # nothing: fewer results in between
        _rung("chunked_loss", chunk=ON_GPU if on_gpu else ON_CPU),  # some kernels
        _rung("checkpoint_blocks", every=2),  # a sixth of a step
        _rung("checkpoint_blocks", every=1.5),  # two ninths
        _rung("checkpoint_blocks", every=1.25),  # four fifteenths
        _rung("checkpoint_blocks", every=1),  # a third
        _rung("fp16" if software.bfloat16 is False else "bf16"),  # no time, but another format
        _rung("compile"),  # minutes, once
        (*_rung("compile"), *_rung("fused_attention")),
    ]
    return [
        rung
        for rung in rungs
        if not any(out_of_bounds(one.lever, LEVERS[one.lever].effect, options) for one in rung)
    ]


def candidates(options: Options, starved: Trial) -> tuple[Candidate, ...]:
    """What would be tried to make it run. How much each saves is not known of a job that died."""
    rungs = ladder(options, starved)
    settings = {one.lever: one.setting for rung in rungs for one in rung}
    return tuple(Candidate(lever, (setting,), 0.0) for lever, setting in settings.items())


class Rescued(Footing):
    """The least costly plan with which the job runs."""

    at_once = True
    good = "runs"

    def __init__(self, workshop: Workshop, options: Options) -> None:
        # What fits is known by whether it runs; among what fits the fastest is looked for.
        super().__init__(workshop, replace(options, objective="speed"))
        self.plan = Plan()

    def make_it_run(self, starved: Trial) -> Trial:
        """The trial of the plan with which it does."""
        self._workshop.without_memory()
        found = rescue(starved.reason, ladder(self.options, starved), self._workshop)
        self.note(rescue=found)
        if found.plan is None:
            tried = f"{len(found.tried)} plans were tried"
            raise NoPlan(f"Nothing was found that makes this job fit into memory: {tried}.")
        self.plan = found.plan
        trials = [trial for trial in self._workshop.record.trials if trial.purpose == PURPOSE]
        return next(one for one in trials if one.plan.levers == self.plan.levers)

    def examiner(self, measurement: Measurement, figures: Figures, baseline: Trial) -> Examiner:
        """By the job as it is on the largest batches it can be examined on; else by the plan."""
        loader = training_loader(measurement)
        size = (loader.batch_size or 1) if loader is not None else 1
        steps = steps_for(figures.step.p50, baseline)
        for divisor in [one for one in DIVISORS if one <= size]:
            examiner = Examiner(self._workshop, measurement, steps, divisor=divisor, tight=True)
            if examiner.is_able():
                return examiner
        return self._in_host_memory(measurement, steps) or Examiner(
            self._workshop, measurement, steps, start=self.plan, tight=True
        )

    def _in_host_memory(self, measurement: Measurement, steps: int) -> Examiner | None:
        """Compiled code keeps what it keeps by itself; and what fills a host it cannot relieve."""
        compiled = any(model.compiled for model in measurement.inventory.models)
        if compiled or measurement.software.device == "cpu":
            return None
        examiner = Examiner(self._workshop, measurement, steps, aside=True, tight=True)
        self._workshop.keep_back(after_the_examination(self.plan, Plan()))
        try:
            if not examiner.is_able():
                return None
            found = examiner.examine(self.plan)  # while there is something else to turn to
            return examiner if found.same or any(map(is_difference, found.reasons)) else None
        except BudgetSpent:  # it is slow: what runs is handed out without
            return None
        finally:
            self._workshop.keep_back(Later())

    def settle(self, examiner: Examiner) -> None:
        found = _compared(self._rescue, examiner)
        if examiner.start.is_empty:
            equivalence = examiner.examine(self.plan)
            self.note(equivalence=equivalence)
            found = replace(found, differs=next(iter(equivalence.reasons), ""))
        self.note(rescue=found)
        if found.differs:
            raise NoPlan(f"No plan is handed out: it runs, but {found.differs}.")

    def examined(self, plan: Plan, examiner: Examiner) -> Equivalence | None:
        return None if plan.levers == examiner.start.levers else examiner.examine(plan)

    def instead(self, why: str) -> Plan:
        """It runs, and that is what was wanted."""
        return self.plan

    def soaked(self, plan: Plan) -> Soaked:
        """The plain job on batches that it has memory for; otherwise our plan stands for it."""
        start = Plan() if self._rescue.divisor > 1 else self.plan
        return soak(plan, self._soak, self._workshop.folder, start)

    def verdict(self, plan: Plan) -> str:
        self.note(rescue=self._with_cost(plan))
        found = self._rescue
        runs = f"It runs with {' + '.join(names(plan))}, where the job as it is runs out of memory"
        cost = f"; a step takes {found.cost:.2f}× as long, on smaller batches" if found.cost else ""
        steps = self.found.equivalence.steps if self.found.equivalence else 0
        if found.divisor > 1:
            same = f"The same training over {steps} steps, on batches of 1/{found.divisor}."
        elif found.aside:
            same = f"The same training over {steps} steps."
        else:
            same = "That it is the same training is not shown: there is nothing to compare it with."
        return f"{runs}{cost}. {same}"

    @property
    def _rescue(self) -> Rescue:
        found = self.found.rescue
        assert found is not None
        return found

    def _soak(self, plan: Plan, order: Soak, purpose: str) -> Trial:
        divisor = self._rescue.divisor if plan.is_empty else 1
        return self._workshop.soaked(plan, order, purpose, divisor)

    def _with_cost(self, plan: Plan) -> Rescue:
        """What the plan costs, where the job as it is can be timed on smaller batches."""
        found = self._rescue
        if found.divisor == 1:
            return found
        with suppress(BudgetSpent):  # of which nothing depends
            both = [self._workshop.timed(one, COST, found.divisor) for one in (Plan(), plan)]
            before, after = both
            cost = after.step.mean / before.step.mean if before and after else None
            return replace(found, cost=cost)
        return found


def _compared(found: Rescue, examiner: Examiner) -> Rescue:
    """With what is known of the job as it is."""
    if examiner.divisor > 1:
        return replace(
            found,
            divisor=examiner.divisor,
            shown=(f"all that is named here, on batches of 1/{examiner.divisor} of their size",),
            not_shown=("whole batches, with which the job as it is runs out of memory",),
        )
    if examiner.aside:
        return replace(found, aside=True, shown=(IN_FULL,))
    died, ran = examiner.beginning().evidence, examiner.reference.evidence
    start = beginning(died.structure, ran.structure) if died and ran else Beginning(0, 0, "")
    batches = "1 batch" if start.batches == 1 else f"{start.batches} batches"
    steps = "1 step" if start.steps == 1 else f"{start.steps} steps"
    known = f"its beginning, as far as it comes: {batches} by checksum, {steps}"
    return replace(
        found,
        shown=(known,) if start.batches else (),
        not_shown=("gradients, updates and losses of the job as it is: there are none",),
        differs=start.differs,
    )


def _rung(lever: str, **setting: object) -> Rung:
    return (LeverSetting(lever, setting),)
