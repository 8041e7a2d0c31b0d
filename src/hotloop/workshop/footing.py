"""What a search stands on: what plans are compared with, and what is left when none is better.

Ordinarily that is the job as it is. A job that runs out of memory as it is needs another: see
`rescuing`.
"""

from __future__ import annotations

from dataclasses import replace

from hotloop.equivalence.judge import Equivalence
from hotloop.figures import Figures
from hotloop.measurement import Measurement
from hotloop.plan import Plan
from hotloop.study import Found, Options, Soaked
from hotloop.trial.trial import Trial
from hotloop.workshop.exam_steps import steps_for
from hotloop.workshop.examine import Examiner
from hotloop.workshop.soak import soak
from hotloop.workshop.workshop import Workshop


class NoPlan(Exception):
    """Nothing is handed out. Says why, in a sentence."""


class Footing:
    """The job as it is."""

    plan = Plan()
    """What the job needs to run at all."""
    at_once = False
    """Whether a plan must act from the first call of a model on."""
    good = "is faster"
    """What is good about a plan that comes out of it."""

    def __init__(self, workshop: Workshop, options: Options) -> None:
        self._workshop = workshop
        self.options = options

    def baseline(self) -> Trial:
        """Once more."""
        return self._workshop.baseline(self.plan)

    def examiner(self, measurement: Measurement, figures: Figures, baseline: Trial) -> Examiner:
        return Examiner(self._workshop, measurement, steps_for(figures.step.p50, baseline))

    def settle(self, examiner: Examiner) -> None:
        """Before anything is tried: is what all stands on the same training?"""

    def examined(self, plan: Plan, examiner: Examiner) -> Equivalence | None:
        """None: there is nothing that it could be compared with."""
        return examiner.examine(plan)

    def instead(self, why: str) -> Plan:
        """Where nothing better was found, or proven."""
        raise NoPlan(why)

    def soaked(self, plan: Plan) -> Soaked:
        return soak(plan, self._workshop.soaked, self._workshop.folder)

    def verdict(self, plan: Plan) -> str:
        """Of a plan that is proven."""
        proof = self.found.proof
        assert proof is not None
        better = "faster" if self.options.objective == "speed" else "less memory"
        equivalence = self.found.equivalence
        changed = ", ".join(equivalence.changed) if equivalence else ""
        training = f"another training: {changed}" if changed else "the same training"
        return f"{proof.comparison.ratio:.2f}× {better}, and {training}."

    def note(self, **changes: object) -> None:
        self._workshop.note(replace(self.found, **changes))  # type: ignore[arg-type]

    @property
    def found(self) -> Found:
        found = self._workshop.record.found
        assert found is not None
        return found
