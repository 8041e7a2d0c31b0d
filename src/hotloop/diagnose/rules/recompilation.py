"""What torch.compile made does not fit the next batch, and is made again."""

from __future__ import annotations

from hotloop import compiling, timeline
from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import dearest, dearest_lines, distinct
from hotloop.diagnose.sightings import Sighting, sightings
from hotloop.diagnose.steady import steady_steps
from hotloop.diagnose.wording import percent, seconds
from hotloop.inspection import Compilation, Frame

SLOW = 1.5
"""Times the median step. What a steady step takes beyond that may have gone to compiling."""
COMPILING = ("convert_frame.py:__call__", "convert_frame.py:_compile", "compile_fx")
AGAIN = 3
"""Compilations in the trial that was looked into, where nobody saw when the timed one compiled.
Two may be those of an epoch's last batch, which is short, and of the evaluation behind it."""
BREAKS = 5
"""Graph breaks that are worth a remark."""


def recompilation(case: Case) -> Finding | None:
    if case.inspection is None:
        return None
    compiled = case.inspection.compilations
    share = _share(case, compiled)
    if share < LEAST_SHARE:
        return _breaks(case)
    reasons = dict.fromkeys(one.reason for one in compiled if one.reason)
    return Finding(
        rule="recompilation",
        title=f"torch.compile takes {percent(share)} of the run: it compiles again and again",
        share=share,
        remedy="Give it shapes that stay, or compile with dynamic=True.",
        effort=Effort.SETTING,
        evidence=(
            *_how_often(compiled, case.inspection.steps),
            *list(reasons)[:2],
            *_most_breaks(case),
        ),
        places=_places(case, compiled),
    )


def _how_often(compiled: list[Compilation], steps: int) -> tuple[str, ...]:
    """torch keeps account of a few dozen: of a script that compiles more, none may be new."""
    if not compiled:
        return ()
    each = sum(one.seconds for one in compiled) / len(compiled)
    times = f"{len(compiled)} compilations in {steps} steps"
    return (f"{times}, long after the first, of {seconds(each)}",)


def _share(case: Case, compiled: list[Compilation]) -> float:
    """What the timed trial compiled in its steady steps, if it did so from first to last."""
    if not case.measurement.script_compiling.begin_ns:
        return _by_slow_steps(case, compiled)
    if not compiling.lasts(case.measurement):
        return 0.0
    with_it = sum(one.seconds for one in steady_steps(case))
    clock = compiling.events_without_any(case.measurement)
    without = timeline.steps(clock)[case.figures.warm_up_steps :]
    return 1 - sum(one.seconds for one in without) / with_it if with_it else 0.0


def _by_slow_steps(case: Case, compiled: list[Compilation]) -> float:
    """By the compilations that were seen, as far as the timed trial has slow steps to show."""
    assert case.inspection is not None
    if len(compiled) < AGAIN or not case.inspection.steps:
        return 0.0
    step = case.figures.step
    a_step = sum(one.seconds for one in compiled) / case.inspection.steps
    steady = [one.seconds for one in steady_steps(case)]
    usual = step.p50
    if 2 * len(compiled) > case.inspection.steps:
        # Where more than every other step compiles, the median is no step without.
        usual = min(usual, step.mean - a_step) if a_step < step.mean else step.fastest
    beyond = sum(one - usual for one in steady if one > SLOW * usual)
    return beyond / sum(steady) if steady else 0.0


def _breaks(case: Case) -> Finding | None:
    """A remark: a graph that breaks runs, and is optimised in parts."""
    assert case.inspection is not None
    count = sum(case.inspection.graph_breaks.values())
    if count < BREAKS:
        return None
    return Finding(
        rule="recompilation",
        title=f"torch.compile breaks the graph in {count} places",
        share=0.0,
        remedy="Move what it cannot trace out of the compiled function.",
        effort=Effort.LINES,
        evidence=_most_breaks(case),
        is_limit=False,
    )


def _most_breaks(case: Case) -> tuple[str, ...]:
    breaks = case.inspection.graph_breaks if case.inspection else {}
    often = sorted(breaks, key=lambda reason: -breaks[reason])[:2]
    return tuple(f"the graph breaks {breaks[reason]} times: {reason}" for reason in often)


def _places(case: Case, compiled: list[Compilation]) -> tuple[Frame, ...]:
    called = dearest_lines(sightings(case), _is_compiling)
    made = dearest(
        (Frame(one.file, one.line, one.function, is_users=True), one.seconds)
        for one in compiled
        if one.file
    )
    return distinct([*called[:2], *made])


def _is_compiling(sighting: Sighting) -> bool:
    return sighting.passes(*COMPILING)
