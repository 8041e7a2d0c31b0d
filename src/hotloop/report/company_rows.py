"""Whether what was timed had the machine for itself: what else ran beside it, as plain rows."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from hotloop.study import Study
from hotloop.trial.company import Company

NOTICED = 0.1
"""Of the cores' time. Less than that moves a step's time by less than processes differ anyhow."""
OFTEN = 0.25
"""Of a study's runs: some disturbed ones among many are what medians and intervals are for."""


def facts(study: Study) -> tuple[tuple[str, str], ...]:
    """Label and text; nothing where nothing disturbed it, or where the machine does not tell."""
    told = [trial.company for trial in study.trials if trial.company is not None]
    disturbed = [each for each in told if each.crowd >= NOTICED]
    if not told or len(disturbed) < OFTEN * len(told):
        return ()
    runs = "" if len(told) == 1 else f"during {len(disturbed)} of {len(told)} timed runs "
    what = (
        "so times are too long and wander"
        if len(told) == 1
        else "so intervals are wide and small gains are missed"
    )
    return (("beside it", f"{runs}{_who(disturbed)}, {what}"),)


def _who(disturbed: Sequence[Company]) -> str:
    shares = {
        "other programs": statistics.median(each.others for each in disturbed),
        "other virtual machines": statistics.median(each.stolen for each in disturbed),
    }
    (most, its), (second, least) = sorted(shares.items(), key=lambda one: -one[1])
    said = f"{most} took {its:.0%} of the cores' time"
    return f"{said}, {second} {least:.0%}" if least >= NOTICED / 2 else said
