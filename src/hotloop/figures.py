"""The figures of a measurement: what a person wants to know of its raw samples. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from hotloop import beginnings, compiling, many, stats, timeline
from hotloop.durations import Run
from hotloop.measurement import LoaderSeen, Measurement
from hotloop.timeline import Phase, Step

ENDLESS = 100
"""Times that every sample is drawn in a pass. Whoever draws that many means no pass at all."""


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
class StepTimes:
    """How fast a trial was: all of its figures that need no look at every event."""

    step: stats.Summary
    """Seconds, in the steady state."""
    warm_up_steps: int
    one_off_seconds: float
    epoch_seconds: float | None
    p05: float
    """Seconds that one in twenty steps stays below."""


@dataclass(frozen=True)
class Figures:
    step: stats.Summary
    """Seconds, in the steady state."""
    warm_up_steps: int
    one_off_seconds: float
    """What the warm-up cost beyond steady steps: compiling, tuning, starting workers."""
    compiling_seconds: float
    """Of these, those that compiled."""
    samples_per_second: float | None
    batches_per_second: float
    epoch_seconds: float | None
    phases: tuple[PhaseShare, ...]
    gpu_phases: tuple[PhaseShare, ...]
    """On the GPU's own clock, of the steps that were timed by it."""
    pauses: Pauses
    first_loss: float | None
    last_loss: float | None
    losses_not_finite: int


@dataclass(frozen=True, eq=False)
class _Identity:
    """Makes a value that holds lists a key of a cache: a report asks often of each trial."""

    of: Measurement

    def __hash__(self) -> int:
        return id(self.of)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.of is other.of


def figures(measurement: Measurement, clipping: bool = True) -> Figures | None:
    """None when there is no step left to speak of. `clipping`: see `timeline.steps`."""
    return _figures(_Identity(measurement), clipping)


@lru_cache(maxsize=8)
def _figures(measured: _Identity, clipping: bool) -> Figures | None:
    measurement = measured.of
    events = compiling.events_without(measurement)
    gpu = compiling.gpu_without(measurement)
    steps = timeline.steps(events, measurement.losses, gpu, clipping)
    if len(steps) < 2:
        return None
    seconds = [step.seconds for step in steps]
    warm = stats.warm_up(seconds, at_least=_disturbed(measurement))
    steady = steps[warm:]
    step = stats.summary([step.seconds for step in steady])
    total = sum(s.seconds for s in steady)
    samples = sum(s.samples for s in steady)
    losses = [loss for s in steps for loss in s.losses if loss is not None]
    once = _one_off(seconds, warm, step) + compiling.seconds(measurement)
    number = timeline.training_loader(measurement.events)
    return Figures(
        step=step,
        warm_up_steps=warm,
        one_off_seconds=once,
        compiling_seconds=min(_compiled(measurement, warm), once),
        samples_per_second=samples / total if samples else None,
        batches_per_second=_passes(steady) / total,
        epoch_seconds=_epoch(measurement, number, Run(events).turns(warm), step, warm),
        phases=_shares([s.phases for s in steady], total, len(steady)),
        gpu_phases=_gpu_shares(steady),
        pauses=_pauses(steps),
        first_loss=losses[0] if losses else None,
        last_loss=losses[-1] if losses else None,
        losses_not_finite=measurement.losses.not_finite,
    )


def step_times(measurement: Measurement) -> StepTimes | None:
    """The same as `figures` says of them, much sooner."""
    return _step_times(_Identity(measurement))


@lru_cache(maxsize=4096)  # of every trial of a study: each is asked for a dozen times
def _step_times(measured: _Identity) -> StepTimes | None:
    measurement, run = measured.of, Run(compiling.events_without(measured.of))
    seconds = run.seconds()
    if len(seconds) < 2:
        return None
    warm = many.warm_up(seconds, _disturbed(measurement))
    ordered = seconds[warm:].copy()
    ordered.sort()
    step = many.summary(ordered)
    return StepTimes(
        step=step,
        warm_up_steps=warm,
        one_off_seconds=_one_off(seconds[:warm].tolist(), warm, step)
        + compiling.seconds(measurement),
        epoch_seconds=_epoch(measurement, run.loader(), run.turns(warm), step, warm),
        p05=many.percentile(ordered, 5),
    )


def _disturbed(measurement: Measurement) -> int:
    """The first step has no beginning that anybody saw, and discovery disturbs a few more."""
    return max(1, measurement.discovery_steps)


def _one_off(seconds: Sequence[float], warm: int, step: stats.Summary) -> float:
    return max(0.0, sum(seconds[:warm]) - warm * step.p50)


def training_loader(measurement: Measurement) -> LoaderSeen | None:
    return _nth(measurement, timeline.training_loader(measurement.events))


def _compiled(measurement: Measurement, warm: int) -> float:
    """Where nobody saw when: all that the job compiled."""
    known = compiling.seconds_of_warm_up(measurement, warm)
    return (measurement.compile_seconds or 0.0) if known is None else known


def _nth(measurement: Measurement, number: int | None) -> LoaderSeen | None:
    loaders = measurement.inventory.loaders
    return loaders[number] if number is not None and number < len(loaders) else None


def _passes(steps: Sequence[Step]) -> int:
    """Batches, or steps where the script draws its batches by hand."""
    return sum(step.batches for step in steps) or len(steps)


def _epoch(
    measurement: Measurement, number: int | None, batches: int, step: stats.Summary, warm: int
) -> float | None:
    """`number`: of the loader. `batches`: that it has loaded for the steps that were summed up."""
    loader = _nth(measurement, number)
    if loader is None or loader.batches is None or not batches or _is_endless(loader):
        return None
    steps = loader.batches / (batches / step.count) * step.mean
    return steps + beginnings.seconds(measurement.events, loader, number or 0, warm)


def _is_endless(loader: LoaderSeen) -> bool:
    """Told to draw so often that no pass ever ends, as some do who count steps alone."""
    drawn = loader.batches * loader.batch_size if loader.batches and loader.batch_size else 0
    return loader.samples is not None and drawn > ENDLESS * loader.samples


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
    return tuple(share for share in shares if share.seconds)


def _pauses(steps: Sequence[Step]) -> Pauses:
    pauses = [step.evaluation for step in steps if step.evaluation]
    run = sum(step.seconds for step in steps) + sum(pauses)
    return Pauses(len(pauses), sum(pauses), sum(pauses) / run if run else 0.0)
