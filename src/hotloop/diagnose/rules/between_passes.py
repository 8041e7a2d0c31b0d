"""Much of a step goes by in none of its phases. A remark: where that is, the lines say."""

from __future__ import annotations

from hotloop.diagnose.base import Case, Effort, Finding
from hotloop.diagnose.call_sites import dearest_lines, distinct
from hotloop.diagnose.sightings import sightings
from hotloop.diagnose.wording import percent, seconds
from hotloop.timeline import Phase

MUCH = 0.15
"""Of a step. Some time always goes by in the loop itself."""


def between_passes(case: Case) -> Finding | None:
    share = case.share(Phase.REST)
    # On a GPU that is where the CPU waits for what it has queued.
    if case.on_gpu or share < MUCH:
        return None
    lines = dearest_lines(sightings(case), lambda one: one.phase == Phase.REST)
    return Finding(
        rule="between_passes",
        title=f"{percent(share)} of a step goes by between its parts, unaccounted for",
        share=0.0,
        remedy="See what the script, or its framework, does there: logging, say.",
        effort=Effort.LINES,
        evidence=_evidence(case, share),
        places=distinct(lines),
        is_limit=False,
    )


def _evidence(case: Case, share: float) -> tuple[str, ...]:
    inventory = case.measurement.inventory
    found = [
        f"{seconds(share * case.figures.step.mean)} a step are neither data nor passes nor updates"
    ]
    if not inventory.optimizers:
        found.append("no optimizer steps: weights that are updated by hand are among it")
    if not inventory.models:
        found.append("no call of a module was seen: a loss that is computed by hand is among it")
    return tuple(found)
