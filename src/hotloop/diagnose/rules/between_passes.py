"""Much of a step goes by in none of its phases. A remark: where that is, the lines say."""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.diagnose.base import Case, Effort, Finding
from hotloop.diagnose.call_sites import at_the_loader, dearest, distinct
from hotloop.diagnose.loops import at_a_loop
from hotloop.diagnose.side_jobs import beside_the_training
from hotloop.diagnose.sightings import Sighting, innermost, of_a_step, sightings
from hotloop.diagnose.wording import percent, seconds
from hotloop.inspection import Frame
from hotloop.timeline import Phase

MUCH = 0.15
"""Of a step. Some time always goes by in the loop itself."""

REST = (Phase.REST,)
MODULE = "torch/nn/modules/module.py"
"""In the path of the file that stands between the line that calls a module and the module's own."""


def between_passes(case: Case) -> Finding | None:
    every, beside, looped = sightings(case), beside_the_training(case), at_a_loop(case)

    def told(sighting: Sighting) -> bool:
        return bool(beside(sighting)) or looped(sighting) or bool(at_the_loader([sighting]))

    share = case.share(Phase.REST) - of_a_step(case, every, told, REST)
    # On a GPU that is where the CPU waits for what it has queued.
    if case.on_gpu or share < MUCH:
        return None
    seen = [one for one in every if one.phase == Phase.REST and not told(one)]
    return Finding(
        rule="between_passes",
        title=f"{percent(share)} of a step goes by between its parts, unaccounted for",
        share=0.0,
        remedy="See what the script, or its framework, does there: logging, say.",
        effort=Effort.LINES,
        evidence=_evidence(case, share, seen),
        places=distinct(dearest(_lines(seen))),
        is_limit=False,
    )


def _lines(seen: list[Sighting]) -> Iterator[tuple[Frame, float]]:
    """The innermost, and of what a module does there the one that calls it.

    Its own lines run in the passes of a step, too, and that is what they were taken for.
    """
    for one in seen:
        line = innermost(_outside_modules(one)) or one.line
        if line is not None:
            yield line, one.seconds


def _outside_modules(sighting: Sighting) -> tuple[Frame, ...]:
    stack = sighting.stack
    called = (number for number, frame in enumerate(stack) if frame.file.endswith(MODULE))
    return stack[: next(called, len(stack))]


def _evidence(case: Case, share: float, seen: list[Sighting]) -> tuple[str, ...]:
    inventory = case.measurement.inventory
    found = [
        f"{seconds(share * case.figures.step.mean)} a step are neither data nor passes nor updates"
    ]
    if not inventory.optimizers:
        found.append("no optimizer steps: weights that are updated by hand are among it")
    if not inventory.models:
        found.append("no call of a module was seen: a loss that is computed by hand is among it")
    inside = sum(one.seconds for one in seen if len(_outside_modules(one)) < len(one.stack))
    if 2 * inside > sum(one.seconds for one in seen):
        found.append("most of it is calls of modules outside a step's passes: sampling, say")
    return tuple(found)
