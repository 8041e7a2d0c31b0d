"""What each optimisation that a finding names would win by itself.

A finding's share is what its own remedy wins. Where another optimisation addresses it in another
way, that says little of the other: a worker more takes a part of the wait for data, items that are
kept take nearly all of it.
"""

from __future__ import annotations

from dataclasses import replace

from hotloop.diagnose.base import Case, Finding
from hotloop.diagnose.loading import Loading, loading
from hotloop.diagnose.rules.waiting_for_data import SETTINGS

WAITING = "waiting_for_data"


def with_gains(case: Case, finding: Finding) -> Finding:
    if finding.rule != WAITING or not finding.levers:
        return finding
    gains = _of_data(loading(case), finding)
    named = {lever: gains[lever] for lever in finding.levers if lever in gains}
    return replace(finding, gains=named)


def _of_data(load: Loading, finding: Finding) -> dict[str, float]:
    if load.workers and not load.items:
        return {}  # what loading takes, nobody has seen
    gains = {"cache_dataset": load.saved_without(_of_items(load))}
    if finding.cause not in SETTINGS:  # else the remedy is this very one
        gains["loader_workers"] = load.saved_with(load.cores)
    return gains


def _of_items(load: Loading) -> float:
    """Their share of the loading work: a batch of kept ones is still put together."""
    whole = load.items + load.collate
    return load.items / whole if whole else 1.0
