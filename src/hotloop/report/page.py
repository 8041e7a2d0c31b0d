"""Everything that a report says, in its order, as plain rows. Renderers add only how it looks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hotloop.diagnose.wording import in_a_sentence
from hotloop.figures import figures
from hotloop.report import (
    breakdown_rows,
    command_words,
    depth_rows,
    energy_rows,
    equivalence_rows,
    every_trial,
    finding_rows,
    kernel_steps,
    loss_rows,
    machine_rows,
    memory_rows,
    process_rows,
    profile_rows,
    proof_rows,
    roofline_rows,
    step_memory_rows,
    two_steps,
    waterfall_rows,
)
from hotloop.report.breakdown_rows import Breakdown
from hotloop.report.depth_rows import DepthRows
from hotloop.report.energy_rows import Cost, Prices
from hotloop.report.every_trial import TrialDetail
from hotloop.report.finding_rows import FindingDetail
from hotloop.report.headline import Headline, KeyFigure, headline, key_figures
from hotloop.report.limit_words import limit_words
from hotloop.report.loss_rows import Losses
from hotloop.report.memory_rows import Course, Held
from hotloop.report.number_rows import number_rows
from hotloop.report.proof_rows import Proven
from hotloop.report.roofline_rows import Roofline
from hotloop.report.search_figures import Payback, search_figures
from hotloop.report.sides import Side, sides
from hotloop.report.step_memory_rows import StepCourse
from hotloop.report.two_steps import TwoSteps
from hotloop.report.waterfall_rows import Waterfall
from hotloop.search.batch_sizes import Curve
from hotloop.study import NO_TIME, Found, Options, Refused, Soaked, Study

Facts = tuple[tuple[str, str], ...]
"""Label and text. Labels may repeat."""


@dataclass(frozen=True)
class Steps:
    """Where a step's time goes."""

    breakdowns: tuple[Breakdown, ...]
    gpu: tuple[Breakdown, ...]
    timelines: tuple[TwoSteps, ...]


@dataclass(frozen=True)
class Training:
    """Whether it is the same, and what that is known by."""

    verdict: str
    """Empty where it was not examined."""
    facts: Facts
    closeness: float | None
    losses: Losses | None
    soaked: Soaked | None


@dataclass(frozen=True)
class Diagnosed:
    verdict: str
    findings: tuple[FindingDetail, ...]
    checklist: tuple[tuple[str, str, str], ...]
    """Status, name and evidence."""
    numbers: Facts


@dataclass(frozen=True)
class Memories:
    held: tuple[Held, ...]
    courses: tuple[Course, ...]
    """Over time, under a profiler."""
    step: StepCourse | None = None
    """Over a step, by kind."""


@dataclass(frozen=True)
class Page:
    name: str
    command: str
    """"profile", "optimize" or "verify"."""
    line: str
    """The command that started the job."""
    where: str
    """Device, torch and Python."""
    created: str
    headline: Headline
    key_figures: tuple[KeyFigure, ...]
    warnings: tuple[str, ...]
    waterfall: Waterfall | None
    proof: Proven | None
    steps: Steps
    roofline: Roofline | str
    """A sentence where there is nothing to draw."""
    memory: Memories
    training: Training
    trials: tuple[TrialDetail, ...]
    refused: tuple[Refused, ...]
    diagnosed: Diagnosed | None
    job: Facts
    """What was found in the script."""
    costs: tuple[Cost, ...]
    payback: Payback | None
    machine: Facts
    to_apply: Facts
    to_reproduce: Facts
    plan: str
    """As it is written to hotloop.json. Empty without one."""
    prices: Prices = field(default_factory=Prices)
    sizes: Curve | None = None
    """Batch sizes, where they were searched."""
    depths: tuple[tuple[str, DepthRows], ...] = ()
    """What profilers saw, by their names."""


def page(
    study: Study,
    logs: Mapping[str, str] | None = None,
    prices: Prices | None = None,
    plan_file: str = "hotloop.json",
) -> Page:
    """`logs`: see `every_trial`. `prices`: without them no money is spoken of."""
    found = study.found or Found(Options())
    both, prices = sides(study), prices or Prices()
    return Page(
        name=study.job.shown,
        command=study.command,
        line=command_words.job_words(study.job),
        where=_where(study),
        created=study.created,
        headline=headline(study, both),
        key_figures=key_figures(study, both),
        warnings=found.warnings,
        waterfall=waterfall_rows.rows(study),
        proof=proof_rows.rows(study),
        steps=_steps(study, both),
        roofline=roofline_rows.rows(study),
        memory=_memory(study, both),
        training=_training(study, found),
        trials=every_trial.rows(study, logs or {}),
        refused=_refused(found),
        diagnosed=_diagnosed(study, both),
        job=(*process_rows.facts(study), *_job(both)),
        costs=energy_rows.rows(study, both, prices),
        payback=search_figures(study).payback if study.found else None,
        machine=machine_rows.rows(study),
        to_apply=_to_apply(study, found, plan_file),
        to_reproduce=tuple(command_words.to_reproduce(study)),
        plan=command_words.plan_text(found.plan) if found.plan else "",
        prices=prices,
        sizes=found.sizes,
        depths=_depths(study),
    )


def _depths(study: Study) -> tuple[tuple[str, DepthRows], ...]:
    seen = [(trial.deep, Path(trial.log).parent) for trial in study.trials if trial.deep]
    home = study.job.cwd
    return tuple((deep.kind, depth_rows.rows(deep, folder, home)) for deep, folder in seen)


def _to_apply(study: Study, found: Found, plan_file: str) -> Facts:
    comparable = found.rescue is None
    words = command_words.job_words(study.job)
    return tuple(command_words.to_apply(words, plan_file, comparable) if found.plan else ())


def _where(study: Study) -> str:
    found = machine_rows.software(study)
    if found is None:
        return study.machine.cpu
    device = study.machine.cpu if found.device == "cpu" else found.device
    return f"{device} · torch {found.torch} · Python {found.python}"


def _steps(study: Study, both: tuple[Side, ...]) -> Steps:
    kernels = kernel_steps.rows(study)
    timelines = (*two_steps.rows(both), *((kernels,) if kernels else ()))
    return Steps(breakdown_rows.rows(both), breakdown_rows.gpu_rows(both), timelines)


def _memory(study: Study, both: tuple[Side, ...]) -> Memories:
    step = step_memory_rows.rows(study, breakdown_rows.rows(both[:1]))
    return Memories(memory_rows.rows(both), memory_rows.courses(study), step)


def _training(study: Study, found: Found) -> Training:
    judged = found.equivalence
    return Training(
        verdict=equivalence_rows.verdict(judged) if judged or study.command == "verify" else "",
        facts=tuple(equivalence_rows.facts(judged)) if judged else (),
        closeness=judged.closeness if judged else None,
        losses=loss_rows.rows(study),
        soaked=found.soaked,
    )


def _diagnosed(study: Study, both: tuple[Side, ...]) -> Diagnosed | None:
    found = study.diagnosis
    if found is None:
        return None
    measurement = both[0].trial.measurement if both else None
    on_gpu = measurement is not None and measurement.software.device != "cpu"
    return Diagnosed(
        verdict=limit_words(study),
        findings=finding_rows.rows(found, study.job.cwd),
        checklist=tuple(
            (one.status, one.name, in_a_sentence(one.evidence)) for one in found.checklist
        ),
        numbers=number_rows(found.numbers, on_gpu),
    )


def _job(both: tuple[Side, ...]) -> Facts:
    """Of the job as it is, or as it was profiled."""
    if not both or both[0].trial.measurement is None:
        return ()
    trial, measurement = both[0].trial, both[0].trial.measurement
    found = figures(measurement)
    if found is None:
        return ()
    told = profile_rows.rows(measurement, found, trial.shielding, trial.receipts)
    already = (("does well", ", ".join(told.already)),) if told.already else ()
    return (("a step", ", ".join(told.step)), *told.facts, *already)


def _refused(found: Found) -> tuple[Refused, ...]:
    """Those first that were tried, the dearest first; then those that were not."""
    named = {one.lever for one in found.refused}
    untried = found.climb.untried if found.climb else ()
    left = [Refused(name, NO_TIME, False) for name in untried if name not in named]
    return tuple(sorted((*found.refused, *left), key=lambda one: (not one.tried, -one.cost)))
