"""What `hotloop optimize` ends with, as plain rows."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop import units
from hotloop.equivalence.judge import Equivalence
from hotloop.figures import PhaseShare
from hotloop.measurement import Measurement
from hotloop.plan import LeverSetting
from hotloop.report import equivalence_rows, proof_rows, rescue_rows
from hotloop.report.phase_names import phase_names
from hotloop.report.plan_words import NOTHING, setting_words
from hotloop.report.refusal_rows import why
from hotloop.report.search_figures import Pace, Rung, SearchFigures, search_figures
from hotloop.report.trial_rows import Telling, TrialRow
from hotloop.search.batch_sizes import Curve, SizePoint
from hotloop.search.compare import Comparison
from hotloop.study import NO_TIME, Found, Options, Refused, Soaked, Study
from hotloop.timeline import Phase

NOT_MEASURED = "–"
SCREENED = "~"
"""Before a figure that comes from one process alone."""


@dataclass(frozen=True)
class PhaseChange:
    phase: str
    name: str
    before: float
    """Seconds a step."""
    after: float
    text: str


@dataclass(frozen=True)
class LadderRow:
    name: str
    gain: str
    """Its own."""
    step: str
    epoch: str
    memory: str
    length: float
    """Of its bar: the step against the longest of the ladder. 0 where it was not measured."""


@dataclass(frozen=True)
class SearchRows:
    headline: str
    won: bool
    phases: tuple[PhaseChange, ...]
    clock: str
    """Whose clock they were read off, where that is not the CPU's."""
    ladder: tuple[LadderRow, ...]
    screened: bool
    """Whether a figure of the ladder comes from one process alone."""
    tried: tuple[TrialRow, ...]
    """The trials that searched, where nothing was won: otherwise the ladder tells more."""
    facts: tuple[tuple[str, str], ...]
    """Label and text, in the order they are shown. Labels may repeat."""


def rows(study: Study) -> SearchRows:
    found = study.found or Found(Options())
    figures = search_figures(study)
    won = found.plan is not None
    ladder = _ladder(figures) if won else ()
    return SearchRows(
        headline=_headline(found, figures) if won else found.verdict,
        won=won,
        phases=_phases(figures, phase_names(_measured(study))),
        clock="on the GPU's own clock" if _on_gpu_clock(figures) else "",
        ladder=ladder,
        screened=any(SCREENED in row.step for row in ladder),
        tried=() if won else _tried(study, found.options.objective),
        facts=(
            *(rescue_rows.facts(found.rescue) if found.rescue else ()),
            *((("limited by", study.diagnosis.verdict),) if study.diagnosis else ()),
            *_sizes(found.sizes),
            *_undecided(found),
            *_refused(found),
            *(equivalence_rows.facts(found.equivalence) if found.equivalence else ()),
            *_soaked(found.soaked),
            *_disturbed(found),
            *_cost(figures),
            *(("warning", warning) for warning in found.warnings),
        ),
    )


def _headline(found: Found, figures: SearchFigures) -> str:
    """Such as "2.71× faster [2.65, 2.77], indistinguishable training over 60 steps: …"."""
    if found.rescue is not None:
        return rescue_rows.headline(found, figures.after)
    claims = []
    if found.proof is not None:
        better = "less memory" if found.options.objective == "memory" else "faster"
        claims.append(f"{_interval(found.proof.comparison, better)}")
    claims += _training(found.equivalence)
    changes = _changes(figures.before, figures.after, found.options.objective)
    return ": ".join(part for part in (", ".join(claims), ", ".join(changes)) if part)


def _undecided(found: Found) -> list[tuple[str, str]]:
    """What is in the plan, which was proven as a whole, without having shown what it adds."""
    parts = found.proof.contributions if found.plan and found.proof else ()
    open_ = [one.lever for one in parts if one.comparison.pairs and not one.comparison.faster]
    if not open_:
        return []
    what = "it stays" if len(open_) == 1 else "they stay"
    why = f"not shown to help by itself; {what} in the plan that was proven as a whole"
    return [("undecided", f"{', '.join(open_)}: {why}")]


def _training(found: Equivalence | None) -> list[str]:
    if found is None or not found.same:
        return []
    if not found.changed:
        return [f"indistinguishable training over {found.steps} steps"]
    return [f"another training, by {' and '.join(found.changed)}"]


def _changes(before: Pace | None, after: Pace | None, objective: str) -> list[str]:
    if before is None or after is None:
        return []
    steps = units.seconds(before.step_seconds), units.seconds(after.step_seconds)
    changes = [f"{steps[0]} → {steps[1]} a step"]
    if before.epoch_seconds is not None and after.epoch_seconds is not None:
        epochs = units.seconds(after.epoch_seconds), units.seconds(before.epoch_seconds)
        changes.append(f"an epoch in {epochs[0]} instead of {epochs[1]}")
    if objective == "memory" and before.memory is not None and after.memory is not None:
        is_more = before.counts_children or after.counts_children
        whose = " with child processes" if is_more else ""
        changes.insert(0, f"{units.size(before.memory)} → {units.size(after.memory)}{whose}")
    return changes


def _interval(comparison: Comparison, better: str = "") -> str:
    ratio = f"{comparison.ratio:.2f}×{f' {better}' if better else ''}"
    return f"{ratio} [{comparison.low:.2f}, {comparison.high:.2f}]"


def _measured(study: Study) -> Measurement | None:
    return next((trial.measurement for trial in study.trials if trial.measurement), None)


def _on_gpu_clock(figures: SearchFigures) -> bool:
    """The CPU's clock gives the time that it waits for the GPU to whatever makes it wait."""
    paces = [pace for pace in (figures.before, figures.after) if pace is not None]
    return bool(paces) and all(pace.gpu_phases for pace in paces)


def _phases(figures: SearchFigures, names: dict[Phase, str]) -> tuple[PhaseChange, ...]:
    before, after, by_gpu = figures.before, figures.after, _on_gpu_clock(figures)
    if before is None:
        return ()
    then = _seconds(before.gpu_phases if by_gpu else before.phases)
    now = _seconds(after.gpu_phases if by_gpu else after.phases) if after else {}
    return tuple(
        PhaseChange(
            phase,
            names[phase],
            then.get(phase, 0.0),
            now.get(phase, 0.0),
            _changed(then.get(phase, 0.0), now.get(phase, 0.0) if after else None),
        )
        for phase in Phase
        if phase in then or phase in now
    )


def _seconds(phases: tuple[PhaseShare, ...]) -> dict[str, float]:
    return {share.phase: share.seconds for share in phases}


def _changed(before: float, after: float | None) -> str:
    now = "" if after is None else f" → {units.seconds(after):>9}"
    return f"{units.seconds(before):>9}{now}"


def _ladder(figures: SearchFigures) -> tuple[LadderRow, ...]:
    paces = [figures.before, *(rung.pace for rung in figures.ladder)]
    longest = max((pace.step_seconds for pace in paces if pace), default=0.0)
    return (
        _rung(NOTHING, "", figures.before, longest),
        *(_rung(f"+ {_name(rung)}", _gain(rung), rung.pace, longest) for rung in figures.ladder),
    )


def _name(rung: Rung) -> str:
    return setting_words(LeverSetting(rung.lever, rung.setting))


def _gain(rung: Rung) -> str:
    if rung.gain is None:
        return NOT_MEASURED
    # Nothing to compare with: without it the job fails.
    return _interval(rung.gain) if rung.gain.pairs else "needed"


def _rung(name: str, gain: str, pace: Pace | None, longest: float) -> LadderRow:
    if pace is None:
        return LadderRow(name, gain, NOT_MEASURED, NOT_MEASURED, NOT_MEASURED, 0.0)
    sign = SCREENED if pace.screened else ""
    return LadderRow(
        name,
        gain,
        f"{sign}{units.seconds(pace.step_seconds)}",
        NOT_MEASURED if pace.epoch_seconds is None else sign + units.seconds(pace.epoch_seconds),
        NOT_MEASURED if pace.memory is None else units.size(pace.memory),
        pace.step_seconds / longest if longest else 0.0,
    )


def _tried(study: Study, objective: str) -> tuple[TrialRow, ...]:
    telling = Telling(objective)
    told = [(trial.purpose, telling.tell(trial)) for trial in study.trials]
    return tuple(row for purpose, row in told if purpose in ("baseline", "rescue", "screen"))


def _refused(found: Found) -> list[tuple[str, str]]:
    """With its reason what was tried. The rest by name: what could not help was said beforehand."""
    others = [one for one in found.refused if not one.tried]
    late = [one.lever for one in others if one.reason == NO_TIME]
    named = {one.lever for one in found.refused}
    late += [name for name in (found.climb.untried if found.climb else ()) if name not in named]
    rest = [one.lever for one in others if one.reason != NO_TIME]
    return [
        *(("refused", _refusal(one)) for one in found.refused if one.tried),
        *((("not tried", f"{', '.join(late)}: {NO_TIME}"),) if late else ()),
        *((("not tried", f"{units.some(rest)}: the report says why"),) if rest else ()),
    ]


def _refusal(one: Refused) -> str:
    cost = f" (trying it took {units.seconds(one.cost)})" if one.cost else ""
    return f"{one.lever}: {why(one)}{cost}"


def _sizes(curve: Curve | None) -> list[tuple[str, str]]:
    """Every size that was run, and what it came to."""
    if curve is None:
        return []
    begins = curve.plateau.size if curve.plateau else None
    facts = [("batch sizes", _size(point, point.size == begins)) for point in curve.points]
    return facts if len(facts) > 1 else []


def _size(point: SizePoint, begins: bool) -> str:
    if point.rate is None:
        return f"{point.size}: {point.reason}"
    memory = f", {units.size(point.memory)}" if point.memory else ""
    mark = ", where the plateau begins" if begins else ""
    return f"{point.size}: {units.rate(point.rate)} samples/s{memory}{mark}"


def _disturbed(found: Found) -> list[tuple[str, str]]:
    said = proof_rows.disturbed(found.proof.comparison) if found.proof else ""
    return [("not counted", said)] if said else []


def _soaked(soaked: Soaked | None) -> list[tuple[str, str]]:
    if soaked is None:
        return []
    facts = [] if soaked.passed else [("soak", f"failed: {soaked.reason}")]
    if soaked.met:
        facts.append(("soak", f"met {', '.join(soaked.met)}"))
    if soaked.not_met:
        facts.append(("soak", f"did not meet {', '.join(soaked.not_met)}"))
    return facts


def _cost(figures: SearchFigures) -> list[tuple[str, str]]:
    runs = "1 run" if figures.runs == 1 else f"{figures.runs} runs"
    facts = [("cost", f"{runs} of the script, {units.seconds(figures.seconds)}{_unused(figures)}")]
    after = figures.after
    if after is not None and after.one_off_seconds > after.step_seconds:
        once = f"up to {units.seconds(after.one_off_seconds)} once, before steps are steady"
        facts.append(("warm-up", once))
    if figures.payback is not None:
        steps, seconds = figures.payback.steps, units.seconds(figures.payback.seconds)
        facts.append(
            ("payback", f"after {units.count(steps)} steps, which take {seconds} under the plan")
        )
    return facts


def _unused(figures: SearchFigures) -> str:
    """Of a search that went on: what an earlier start has run, and is not in its trials."""
    unused = figures.unused
    if not unused.seconds:
        return ""
    return (
        f"; {units.seconds(unused.seconds)} of them for what was run again or not needed any more"
    )
