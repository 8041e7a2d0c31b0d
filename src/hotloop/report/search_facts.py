"""What stands beneath the figures of a search: each a label and a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from hotloop import units
from hotloop.report import company_rows, equivalence_rows, proof_rows, rescue_rows
from hotloop.report.limit_words import limit_words
from hotloop.report.refusal_rows import why
from hotloop.report.search_figures import SearchFigures
from hotloop.report.sides import sides
from hotloop.search.batch_sizes import Curve, SizePoint
from hotloop.search.interactions import names
from hotloop.study import NO_TIME, Found, Refused, Soaked, Study
from hotloop.workshop.lengths import whole_training

Facts = tuple[tuple[str, str], ...]

NOT_SHOWN = "not shown to help by itself"
NOT_ASKED = "there was no time to leave"


def facts(study: Study, found: Found, figures: SearchFigures) -> Facts:
    """In the order they are shown. Labels may repeat."""
    return (
        *(rescue_rows.facts(found.rescue) if found.rescue else ()),
        *((("limited by", limit_words(study)),) if study.diagnosis else ()),
        *_sizes(found.sizes),
        *_undecided(found),
        *_refused(found),
        *(equivalence_rows.facts(found.equivalence) if found.equivalence else ()),
        *_soaked(found.soaked),
        *_not_finite(study),
        *_disturbed(found),
        *company_rows.facts(study),
        *_cost(figures),
        *_once(study, figures),
        *_payback(figures),
        *(("warning", warning) for warning in found.warnings),
    )


def _undecided(found: Found) -> list[tuple[str, str]]:
    """What is in the plan, which was proven as a whole, without having shown what it adds."""
    if not found.plan or not found.proof:
        return []
    parts = found.proof.contributions
    open_ = [one.lever for one in parts if one.comparison.pairs and not one.comparison.faster]
    # What the job needs to run at all is on both sides of the proof.
    needed = names(found.rescue.plan) if found.rescue and found.rescue.plan else ()
    known = {*(one.lever for one in parts), *needed}
    unmeasured = [lever for lever in names(found.plan) if lever not in known]
    them = "it out" if len(unmeasured) == 1 else "them out one by one"
    return [
        ("undecided", f"{', '.join(levers)}: {why}; {_stays(levers)}")
        for levers, why in ((open_, NOT_SHOWN), (unmeasured, f"{NOT_ASKED} {them}"))
        if levers
    ]


def _stays(levers: Sequence[str]) -> str:
    what = "it stays" if len(levers) == 1 else "they stay"
    return f"{what} in the plan that was proven as a whole"


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


def _not_finite(study: Study) -> list[tuple[str, str]]:
    """A training that has come to nothing is as fast as any."""
    found = []
    for side in sides(study):
        losses = side.trial.measurement.losses if side.trial.measurement else None
        if losses is not None and losses.not_finite:
            count = f"{losses.not_finite} of {len(losses.value)}"
            found.append(("loss", f"{side.label}: {count} not finite"))
    return found


def _cost(figures: SearchFigures) -> list[tuple[str, str]]:
    runs = "1 run" if figures.runs == 1 else f"{figures.runs} runs"
    return [("cost", f"{runs} of the script, {units.seconds(figures.seconds)}{_unused(figures)}")]


def _once(study: Study, figures: SearchFigures) -> list[tuple[str, str]]:
    """Of a training so short that its end was seen it is known whether that pays."""
    after, before = figures.after, figures.before
    if after is None or before is None or after.one_off_seconds <= after.step_seconds:
        return []
    said = f"up to {units.seconds(after.one_off_seconds)} once, before steps are steady"
    steps = whole_training(study.trials[0])
    won = (before.step_seconds - after.step_seconds) * (steps or 0)
    if 0 < won <= after.one_off_seconds - before.one_off_seconds:
        said += f": more than the {units.seconds(won)} that all {steps} steps of this training win"
    return [("warm-up", said)]


def _payback(figures: SearchFigures) -> list[tuple[str, str]]:
    if figures.payback is None:
        return []
    steps, seconds = figures.payback.steps, units.seconds(figures.payback.seconds)
    return [("payback", f"after {units.count(steps)} steps, which take {seconds} under the plan")]


def _unused(figures: SearchFigures) -> str:
    """Of a search that went on: what an earlier start has run, and is not in its trials."""
    unused = figures.unused
    if not unused.seconds:
        return ""
    return (
        f"; {units.seconds(unused.seconds)} of them for what was run again or not needed any more"
    )
