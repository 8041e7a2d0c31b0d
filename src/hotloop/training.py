"""`hotloop.train`: a job trained for real, in the caller's own program, under a plan if given."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.errors import JobInvalid
from hotloop.plan import Plan, load
from hotloop.training_job import TrainingJob

if TYPE_CHECKING:
    from hotloop.runtime.owned.loop import Trained


def train(
    job: TrainingJob | type[TrainingJob],
    plan: str | Path | Plan | None = None,
    keep_going: bool = False,
    quiet: bool = False,
) -> Trained:
    """Trains the job in this process. `trained.model` and `trained.epochs` are what came of it.

    `plan`: a hotloop.json that was found for it. An optimisation that does not take effect raises
    NotApplied after the first steps; with `keep_going` it is left out.
    """
    from hotloop.runtime.owned.here import train as train_here

    chosen = plan if isinstance(plan, Plan) else load(Path(plan)) if plan else Plan()
    return train_here(_made(job), chosen.levers, keep_going, quiet)


def _made(job: Any) -> TrainingJob:
    from hotloop.runtime.owned import reference

    if isinstance(job, type) and issubclass(job, TrainingJob):
        reference.require_methods(job)
        return reference.made(job)
    if isinstance(job, TrainingJob):
        reference.require_methods(type(job))
        return job
    raise JobInvalid(
        f"hotloop.train needs a hotloop.TrainingJob, not a {type(job).__name__}.",
        "Give it the class, or an object of it.",
    )
