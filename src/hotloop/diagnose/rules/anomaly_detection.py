"""Autograd's anomaly detection was left on: a help in looking for a NaN, and slow."""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import distinct
from hotloop.diagnose.sightings import innermost
from hotloop.diagnose.wording import percent, seconds
from hotloop.inspection import Frame
from hotloop.tried import AnomalyTried

SET = "set_anomaly_enabled"


def anomaly_detection(case: Case) -> Finding | None:
    tried = case.inspection.anomaly_tried if case.inspection else None
    if tried is None:
        return None
    share, how = _lost(tried)
    takes = f" and takes {percent(share)} of a step" if share >= LEAST_SHARE else ""
    return Finding(
        rule="anomaly_detection",
        title=f"Autograd's anomaly detection is on{takes}",
        share=share,
        remedy="Turn it off until there is a NaN to look for: torch.autograd.set_detect_anomaly.",
        effort=Effort.SETTING,
        evidence=(how,),
        places=_places(case),
        is_limit=share >= LEAST_SHARE,
        takes=share,
    )


def _lost(tried: AnomalyTried) -> tuple[float, str]:
    """The share of a step, and where that is known from."""
    if tried.seconds is None or tried.own_seconds is None:
        return 0.0, "what it costs was not tried: the run was too short"
    without, with_it = seconds(tried.seconds), seconds(tried.own_seconds)
    how = f"tried in turns: a step takes {without} without it, and {with_it} as it is"
    return max(0.0, 1 - tried.seconds / tried.own_seconds), how


def _places(case: Case) -> tuple[Frame, ...]:
    """Where it is turned on. Lightning does so for a script that asks it to: no line is known."""
    calls = case.inspection.calls if case.inspection else []
    lines = (innermost(call.stack) for call in calls if call.what == SET)
    return distinct(line for line in lines if line is not None)
