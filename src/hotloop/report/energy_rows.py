"""What an epoch costs: time, energy and money, before and after, as plain rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.diagnose.case import case_of
from hotloop.diagnose.footprint import WORLD_AVERAGE, Footprint, footprint
from hotloop.figures import figures
from hotloop.report.sides import Side
from hotloop.study import Study

STEPS = 100_000


@dataclass(frozen=True)
class Prices:
    """What the user says that things cost. None: not said, so nothing is claimed."""

    hour: float | None = None
    """Of the machine."""
    kwh: float | None = None
    """Of electricity."""
    currency: str = ""


@dataclass(frozen=True)
class Cost:
    """Of the GPU alone as to energy. None: unknown."""

    label: str
    epoch_seconds: float | None
    watts: float | None
    joules_step: float | None
    kwh_epoch: float | None
    co2_epoch: float | None
    """Grams, by the world's average electricity unless another was named."""
    machine_epoch: float | None
    """Money."""
    electricity_epoch: float | None
    machine_steps: float | None = None
    """For `STEPS`, where it is not known what an epoch is."""
    electricity_steps: float | None = None

    @property
    def is_known(self) -> bool:
        known = (self.joules_step, self.machine_epoch, self.machine_steps)
        return any(one is not None for one in known)


def rows(study: Study, sides: Sequence[Side], prices: Prices) -> tuple[Cost, ...]:
    """Nothing where neither energy nor a price is known."""
    costs = tuple(_cost(study, side, prices) for side in sides)
    return costs if any(one.is_known for one in costs) else ()


def _cost(study: Study, side: Side, prices: Prices) -> Cost:
    measurement = side.trial.measurement
    found = figures(measurement) if measurement else None
    if measurement is None or found is None:
        return Cost(side.label, None, None, None, None, None, None, None)
    case = case_of(measurement, found, study.machine, timed=side.trial)
    drawn = footprint(case, _intensity(study))
    epoch = found.epoch_seconds
    kwh = drawn.kwh_epoch if drawn else None
    batches = side.trial.own_batches  # a step is one of as many samples as the job's own has
    hours = STEPS * found.step.mean / batches / 3600 if epoch is None else None
    kwh_steps = _times(drawn.watts / 1000 if drawn else None, hours)
    return Cost(
        label=side.label,
        epoch_seconds=epoch,
        watts=drawn.watts if drawn else None,
        joules_step=drawn.joules_step / batches if drawn else None,
        kwh_epoch=kwh,
        co2_epoch=drawn.co2_epoch if drawn else None,
        machine_epoch=_times(prices.hour, epoch / 3600 if epoch is not None else None),
        electricity_epoch=_times(prices.kwh, kwh),
        machine_steps=_times(prices.hour, hours),
        electricity_steps=_times(prices.kwh, kwh_steps),
    )


def _intensity(study: Study) -> float:
    said: Footprint | None = study.diagnosis.numbers.footprint if study.diagnosis else None
    return said.grams_per_kwh if said else WORLD_AVERAGE


def _times(price: float | None, amount: float | None) -> float | None:
    return price * amount if price is not None and amount is not None else None
