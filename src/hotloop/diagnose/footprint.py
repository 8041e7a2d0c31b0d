"""What the steps of a trial drew from the socket, by the GPU's own counter."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from hotloop import energy
from hotloop.diagnose.base import Case
from hotloop.diagnose.steady import steady_spans, steady_steps
from hotloop.energy import PowerLog
from hotloop.measurement import Kind

WORLD_AVERAGE = 475.0
"""Grams of CO₂ for a kWh, the world over, about. Countries lie between 20 and 800."""
JOULES_A_KWH = 3.6e6
ENOUGH = 0.7
"""Of the steady steps, that the GPU was looked at during."""
LOW_CLOCK = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
"""NVML's reasons that mean power or heat: caps and slow-downs, by software or hardware."""


@dataclass(frozen=True)
class Footprint:
    """Of the GPU alone. What the rest of the machine draws is not known."""

    joules_step: float
    joules_sample: float | None
    watts: float
    """On average."""
    kwh_million_samples: float | None
    kwh_epoch: float | None
    co2_million_samples: float | None
    """Grams: an estimate, by the intensity below."""
    co2_epoch: float | None
    grams_per_kwh: float
    """Of the electricity. Not measured: a setting."""
    hottest: float | None = None
    """°C."""
    sm_clock: float | None = None
    """MHz, on average."""
    utilisation: float | None = None
    """Of the time, in which some kernel ran, by the driver: from 0 to 1."""
    throttled: float | None = None
    """Share of the looks at which power or heat kept the clock down."""


def footprint(case: Case, grams_per_kwh: float = WORLD_AVERAGE) -> Footprint | None:
    """None where the GPU does not tell what it draws, or was not looked at for long enough."""
    log = case.power
    window = _window(case) if log is not None and case.on_gpu else None
    if log is None or window is None:
        return None
    window = _looked_at(log, window)
    joules = energy.joules_between(log, *window)
    seconds = (window[1] - window[0]) / 1e9
    if joules is None or not seconds:
        return None
    steps, watts = steady_steps(case), joules / seconds
    # Evaluations in between draw about as much a second as the steps, and are not counted.
    stepping = sum(step.seconds for step in steps)
    samples = sum(step.samples for step in steps)
    sample = watts * stepping / samples if samples else None
    return _footprint(case, log, window, watts, sample, grams_per_kwh)


def _footprint(
    case: Case,
    log: PowerLog,
    window: tuple[int, int],
    watts: float,
    sample: float | None,
    grams_per_kwh: float,
) -> Footprint:
    million = sample * 1e6 / JOULES_A_KWH if sample is not None else None
    lasts = case.figures.epoch_seconds
    epoch = watts * lasts / JOULES_A_KWH if lasts is not None else None
    reasons = energy.during(log, log.throttling, *window)
    return Footprint(
        joules_step=watts * case.figures.step.mean,
        joules_sample=sample,
        watts=watts,
        kwh_million_samples=million,
        kwh_epoch=epoch,
        co2_million_samples=million * grams_per_kwh if million is not None else None,
        co2_epoch=epoch * grams_per_kwh if epoch is not None else None,
        grams_per_kwh=grams_per_kwh,
        hottest=max(energy.during(log, log.temperature, *window), default=None),
        sm_clock=_mean(energy.during(log, log.sm_clock, *window)),
        utilisation=_mean([value / 100 for value in energy.during(log, log.utilisation, *window)]),
        throttled=_mean([float(bool(int(reason) & LOW_CLOCK)) for reason in reasons]),
    )


def _window(case: Case) -> tuple[int, int] | None:
    """From the first to the last optimizer step, or backward pass, of the steady state."""
    for kind in (Kind.OPTIMIZER_BEGIN, Kind.BACKWARD_BEGIN):
        calls = steady_spans(case, kind)
        if len(calls) > 1:
            return min(call.end_ns for call in calls), max(call.end_ns for call in calls)
    return None


def _looked_at(log: PowerLog, window: tuple[int, int]) -> tuple[int, int]:
    """Most of it is as good as all of it: steps are alike, and looks a fifth of a second apart."""
    begin, end = window
    if not len(log):
        return window
    inside = max(begin, log.time_ns[0]), min(end, log.time_ns[-1])
    return inside if inside[1] - inside[0] >= ENOUGH * (end - begin) else window


def _mean(values: list[float]) -> float | None:
    return statistics.fmean(values) if values else None
