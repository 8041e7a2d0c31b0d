"""The ladder as a waterfall: what each optimisation of the plan leaves of a step, as plain rows."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop import units
from hotloop.plan import LeverSetting
from hotloop.report.plan_words import NOTHING, setting_words
from hotloop.report.search_figures import Pace, Rung, SearchFigures, search_figures
from hotloop.search.compare import Comparison
from hotloop.study import Found, Options, Study


@dataclass(frozen=True)
class Gain:
    """How many times better, and between which bounds. No bounds: it was not shown in pairs."""

    ratio: float
    low: float | None
    high: float | None
    pairs: int


@dataclass(frozen=True)
class Stage:
    name: str
    value: float | None
    """Seconds a step, or bytes. None where the plan up to here was never measured."""
    low: float | None
    high: float | None
    """Bounds of the value, where rounds of processes have shown them."""
    before: float | None
    """The value of the stage before, as far as one was measured."""
    own: Gain | None
    """Of this optimisation: the plan against the plan without it."""
    screened: bool
    """From one process alone, which proves nothing."""
    note: str = ""


@dataclass(frozen=True)
class Waterfall:
    objective: str
    stages: tuple[Stage, ...]
    whole: Gain | None
    """The job as it is against the plan."""

    def words(self, value: float | None) -> str:
        if value is None:
            return "not measured"
        return units.size(value) if self.objective == "memory" else units.seconds(value)


def rows(study: Study) -> Waterfall | None:
    """None without a plan: there is nothing to climb."""
    found = study.found or Found(Options())
    figures = search_figures(study)
    if found.plan is None or figures.before is None:
        return None
    objective = found.options.objective
    whole = gain(found.proof.comparison) if found.proof else None
    return Waterfall(objective, _stages(figures, objective, whole), whole)


def gain(comparison: Comparison) -> Gain | None:
    """None where there was nothing to compare with."""
    count = len(comparison.pairs)
    if not count:
        return None
    proven = comparison.low < comparison.high
    low, high = (comparison.low, comparison.high) if proven else (None, None)
    return Gain(comparison.ratio, low, high, count)


def gain_words(gain: Gain | None) -> str:
    if gain is None:
        return ""
    bounds = "" if gain.low is None or gain.high is None else f" [{gain.low:.2f}, {gain.high:.2f}]"
    return f"{gain.ratio:.2f}×{bounds}"


def _stages(figures: SearchFigures, objective: str, whole: Gain | None) -> tuple[Stage, ...]:
    start = _value(figures.before, objective)
    stages = [Stage(NOTHING, start, None, None, None, None, _screened(figures.before))]
    last = start
    for number, rung in enumerate(figures.ladder, start=1):
        is_plan = number == len(figures.ladder)
        stages.append(_stage(rung, objective, last, start, whole if is_plan else None))
        last = stages[-1].value if stages[-1].value is not None else last
    return tuple(stages)


def _stage(
    rung: Rung, objective: str, last: float | None, start: float | None, whole: Gain | None
) -> Stage:
    low = start / whole.high if start and whole and whole.high else None
    high = start / whole.low if start and whole and whole.low else None
    needed = rung.gain is not None and not rung.gain.pairs
    return Stage(
        name=setting_words(LeverSetting(rung.lever, rung.setting)),
        value=_value(rung.pace, objective),
        low=low,
        high=high,
        before=last,
        own=gain(rung.gain) if rung.gain else None,
        screened=_screened(rung.pace),
        note="needed: without it the job failed" if needed else "",
    )


def _value(pace: Pace | None, objective: str) -> float | None:
    if pace is None:
        return None
    return pace.memory if objective == "memory" else pace.step_seconds


def _screened(pace: Pace | None) -> bool:
    return pace is not None and pace.screened
