"""What the phases of a step are called."""

from __future__ import annotations

from hotloop.figures import training_loader
from hotloop.measurement import Measurement
from hotloop.timeline import Phase

NAMES = {
    Phase.DATA: "waiting for data",
    Phase.COPY: "copying to device",
    Phase.FORWARD: "forward and loss",
    Phase.BACKWARD: "backward",
    Phase.OPTIMIZER: "optimizer",
    Phase.EVALUATION: "evaluation",
    Phase.REST: "unaccounted for",
}
BETWEEN = "between steps"


def phase_names(measurement: Measurement | None) -> dict[Phase, str]:
    """Without a loader nobody knows what a script does after a step, and before the next.

    On a CPU it draws its batch. Beside a GPU it may as well wait there until that has caught up.
    """
    if measurement is None or measurement.software.device == "cpu":
        return NAMES
    by_hand = training_loader(measurement) is None
    return {**NAMES, Phase.DATA: BETWEEN} if by_hand else NAMES
