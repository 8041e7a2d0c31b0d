"""The figures of a measurement: what a person wants to know of its raw samples. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotloop import stats, timeline
from hotloop.measurement import LoaderSeen, Measurement
from hotloop.timeline import Phase, Step


@dataclass(frozen=True)
class PhaseShare:
    phase: str
    seconds: float
    """A step, on average."""
    share: float


@dataclass(frozen=True)
class Pauses:
    """Evaluation and sampling between steps, which are no part of a step."""

    count: int
    seconds: float
    share_of_run: float


@dataclass(frozen=True)
class Figures:
    step: stats.Summary
    """Seconds, in the steady state."""
    warm_up_steps: int
    one_off_seconds: float
    """What the warm-up cost beyond steady steps: compiling, tuning, starting workers."""
    samples_per_second: float | None
    batches_per_second: float
    epoch_seconds: float | None
    phases: tuple[PhaseShare, ...]
    gpu_phases: tuple[PhaseShare, ...]
    pauses: Pauses
    first_loss: float | None
    last_loss: float | None
    losses_not_finite: int


def figures(measurement: Measurement) -> Figures | None:
    """None when there is no step left to speak of."""
    steps = timeline.steps(measurement.events, measurement.losses, measurement.gpu)
    if len(steps) < 2:
        return None
    seconds = [step.seconds for step in steps]
    # The first step has no beginning that anybody saw, and discovery disturbs a few more.
    disturbed = max(1, measurement.discovery_steps)
    warm = stats.warm_up(seconds, at_least=disturbed)
    steady = steps[warm:]
    step = stats.summary([step.seconds for step in steady])
    total = sum(s.seconds for s in steady)
    samples = sum(s.samples for s in steady)
    losses = [loss for s in steps for loss in s.losses if loss is not None]
    return Figures(
        step=step,
        warm_up_steps=warm,
        one_off_seconds=max(0.0, sum(seconds[:warm]) - warm * step.p50),
        samples_per_second=samples / total if samples else None,
        batches_per_second=_passes(steady) / total,
        epoch_seconds=_epoch(measurement, steady, step.mean),
        phases=_shares([s.phases for s in steady], total, len(steady)),
        gpu_phases=_gpu_shares(steady),
        pauses=_pauses(steps),
        first_loss=losses[0] if losses else None,
        last_loss=losses[-1] if losses else None,
        losses_not_finite=measurement.losses.not_finite,
    )


def training_loader(measurement: Measurement) -> LoaderSeen | None:
    number = timeline.training_loader(measurement.events)
    loaders = measurement.inventory.loaders
    return loaders[number] if number is not None and number < len(loaders) else None


def _passes(steps: Sequence[Step]) -> int:
    """Batches, or steps where the script draws its batches by hand."""
    return sum(step.batches for step in steps) or len(steps)


def _epoch(measurement: Measurement, steady: Sequence[Step], mean: float) -> float | None:
    loader = training_loader(measurement)
    batches = sum(step.batches for step in steady)
    if loader is None or loader.batches is None or not batches:
        return None
    return loader.batches / (batches / len(steady)) * mean


def _shares(
    phases: Sequence[dict[Phase, float]], total: float, count: int
) -> tuple[PhaseShare, ...]:
    sums = {phase: sum(p.get(phase, 0.0) for p in phases) for phase in timeline.STEP_PHASES}
    return tuple(
        PhaseShare(phase.value, seconds / count, seconds / total if total else 0.0)
        for phase, seconds in sums.items()
        if seconds or phase is Phase.REST
    )


def _gpu_shares(steady: Sequence[Step]) -> tuple[PhaseShare, ...]:
    # The GPU's clock does not tell an evaluation from the step around it.
    timed = [step for step in steady if step.gpu_seconds and not step.evaluation]
    total = sum(step.gpu_seconds or 0.0 for step in timed)
    if not total:
        return ()
    shares = _shares([step.gpu_phases for step in timed], total, len(timed))
    return tuple(share for share in shares if share.phase != Phase.REST)


def _pauses(steps: Sequence[Step]) -> Pauses:
    pauses = [step.evaluation for step in steps if step.evaluation]
    run = sum(step.seconds for step in steps) + sum(pauses)
    return Pauses(len(pauses), sum(pauses), sum(pauses) / run if run else 0.0)
