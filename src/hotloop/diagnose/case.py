"""From a study's trials to the case that rules look at."""

from __future__ import annotations

from hotloop.diagnose.base import Case
from hotloop.figures import Figures, training_loader
from hotloop.machine import Machine
from hotloop.measurement import Measurement
from hotloop.roof import Roof
from hotloop.trial.trial import Trial


def case_of(
    measurement: Measurement,
    figures: Figures,
    machine: Machine,
    looked: Trial | None = None,
    roof: Roof | None = None,
    timed: Trial | None = None,
) -> Case:
    """`timed`: the trial that was measured.

    `looked`: a trial that was looked into; what it did not get to is simply not there.
    """
    return Case(
        measurement=measurement,
        figures=figures,
        loader=training_loader(measurement),
        cores=machine.cores,
        inspection=looked.inspection if looked else None,
        looked=looked.measurement if looked else None,
        roof=roof,
        gpus=len(machine.gpus),
        power=timed.power if timed else None,
        ran_out=timed is not None and timed.ran_out,
    )
