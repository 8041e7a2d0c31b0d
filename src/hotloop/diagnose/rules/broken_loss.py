"""The loss is no number any more: whatever the job's speed, it learns nothing."""

from __future__ import annotations

from itertools import takewhile

from hotloop.diagnose.base import Case, Effort, Finding

LEAST = 5
"""Losses at the end. A gradient scaler finds its scale by one or two that overflow."""


def broken_loss(case: Case) -> Finding | None:
    losses = case.measurement.losses.value
    broken = len(list(takewhile(lambda loss: loss is None, reversed(losses))))
    if broken < LEAST:
        return None
    return Finding(
        rule="broken_loss",
        title="The loss is infinite or no number: the job learns nothing",
        share=0.0,
        remedy="Find out where that begins, with torch.autograd.set_detect_anomaly(True).",
        effort=Effort.LINES,
        evidence=(f"none of the last {broken:,} losses is finite, of {len(losses):,}",),
        is_limit=False,
    )
