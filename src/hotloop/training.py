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
    anyway: bool = False,
    **settings: Any,
) -> Trained:
    """Trains the job in this process. `trained.model` and `trained.epochs` are what came of it.

    `plan`: a hotloop.json that was found for it. An optimisation that does not take effect raises
    NotApplied after the first steps; with `keep_going` it is left out. A plan that was made for
    another file, torch or GPU is refused, unless `anyway`. `settings`: attributes of the job.
    """
    from hotloop.runtime.owned.here import require_same
    from hotloop.runtime.owned.here import train as train_here

    chosen = plan if isinstance(plan, Plan) else load(Path(plan)) if plan else Plan()
    made = _made(job, settings)
    if not anyway:
        require_same(chosen, type(made))
    return train_here(made, chosen.levers, keep_going, quiet)


def _made(job: Any, settings: dict[str, Any]) -> TrainingJob:
    from hotloop.runtime.owned import reference

    kind = job if isinstance(job, type) else type(job)
    if issubclass(kind, TrainingJob):
        reference.require_methods(kind)
        made: TrainingJob = reference.made(kind) if job is kind else job
        for name, value in settings.items():
            reference.require_setting(made, name)
            setattr(made, name, value)
        return made
    raise JobInvalid(
        f"hotloop.train needs a hotloop.TrainingJob, not a {type(job).__name__}.",
        "Give it the class, or an object of it.",
    )
