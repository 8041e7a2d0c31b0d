"""What `hotloop optimize` ends with, as plain rows."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop import units
from hotloop.equivalence.judge import Equivalence
from hotloop.figures import PhaseShare
from hotloop.measurement import Measurement
from hotloop.plan import LeverSetting
from hotloop.report import rescue_rows, search_facts
from hotloop.report.phase_names import phase_names
from hotloop.report.plan_words import NOTHING, setting_words
from hotloop.report.search_figures import Pace, Rung, SearchFigures, search_figures
from hotloop.report.told_rows import told
from hotloop.report.trial_rows import CLIMBED, TrialRow
from hotloop.search.compare import Comparison
from hotloop.study import Found, Options, Study
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
    phases_of: str
    """Which runs they were read off: of one each, while other figures are means over several."""
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
        phases_of=_phases_of(figures),
        clock="on the GPU's own clock" if _on_gpu_clock(figures) else "",
        ladder=ladder,
        screened=any(SCREENED in row.step for row in ladder),
        tried=() if won else _tried(study),
        facts=search_facts.facts(study, found, figures),
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


def _phases_of(figures: SearchFigures) -> str:
    runs = [
        f"run {pace.middle_trial}, {units.seconds(pace.middle_step)} a step"
        for pace in (figures.before, figures.after)
        if pace is not None
    ]
    return f"of one run{' each' if len(runs) > 1 else ''}: {'; '.join(runs)}" if runs else ""


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


def _tried(study: Study) -> tuple[TrialRow, ...]:
    found = zip(study.trials, told(study), strict=True)
    return tuple(row for trial, row in found if trial.purpose in CLIMBED)
