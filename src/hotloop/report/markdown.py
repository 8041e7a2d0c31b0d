"""The report as Markdown, for pull requests and notes: the same rows as the page, in short."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from hotloop import units
from hotloop.report.breakdown_rows import Breakdown
from hotloop.report.finding_rows import FindingDetail
from hotloop.report.page import Page
from hotloop.report.refusal_rows import untried, why
from hotloop.report.waterfall_rows import Stage, Waterfall, gain_words
from hotloop.study import Refused
from hotloop.trial.terminal import harmless

SCREENED = "~"
"""Before a figure that comes from one process alone."""
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#~])")


def markdown(page: Page) -> str:
    parts = [
        [f"# {text(page.name)}", "", f"**{text(_result(page))}**"],
        ["The job:", "", *code(page.line), "", text(page.where)],
        [f"> {text(warning)}" for warning in page.warnings],
        list(_key_figures(page)),
        list(_ladder(page.waterfall)) if page.waterfall else [],
        list(_phases(page.steps.breakdowns)),
        list(_training(page)),
        list(_limits(page)),
        list(_refused(page.refused)),
        list(_runs(page)),
        list(_facts("The machine", page.machine)),
        *([f"To {what}:", "", *code(line)] for what, line in page.to_apply),
    ]
    return "\n\n".join("\n".join(part).strip("\n") for part in parts if part) + "\n"


def text(words: str) -> str:
    """One line of plain text, whatever a script said in it."""
    return _SPECIAL.sub(r"\\\1", " ".join(harmless(words).split()))


def code(words: str) -> list[str]:
    """Indented, as a fence could be closed by what stands in it."""
    return [f"    {line}" for line in harmless(words).splitlines()]


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> list[str]:
    return [_row(head), "|" + " --- |" * len(head), *map(_row, lines)]


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(map(text, cells)) + " |"


def _result(page: Page) -> str:
    head, gain = page.headline, page.headline.gain
    bounds = ""
    if gain is not None and gain.low is not None and gain.high is not None:
        bounds = f" [{gain.low:.2f}, {gain.high:.2f}]"
    return f"{head.big}{bounds}. {head.sentence}"


def _key_figures(page: Page) -> Iterator[str]:
    if not page.key_figures:
        return
    lines = [
        [one.label, f"{one.before} → {one.value}" if one.before else one.value, one.note]
        for one in page.key_figures
    ]
    yield from table(["", "", ""], lines)


def _ladder(found: Waterfall) -> Iterator[str]:
    what = "memory" if found.objective == "memory" else "a step"
    yield from ("## The ladder", "")
    yield from table(["", "own gain", what], [_stage(found, one) for one in found.stages])
    if any(one.screened for one in found.stages):
        yield from ("", f"{SCREENED} from one process alone")


def _stage(found: Waterfall, one: Stage) -> list[str]:
    sign = SCREENED if one.screened else ""
    return [one.name, gain_words(one.own) or one.note, f"{sign}{found.words(one.value)}"]


def _phases(found: Sequence[Breakdown]) -> Iterator[str]:
    if not found:
        return
    names = {part.phase: part.name for one in found for part in one.parts}
    seconds = [{part.phase: part.seconds for part in one.parts} for one in found]
    lines = [
        [name, *(units.seconds(each[phase]) if phase in each else "–" for each in seconds)]
        for phase, name in names.items()
    ]
    yield from ("## Where a step's time goes", "")
    yield from table(["", *(one.label for one in found)], lines)


def _training(page: Page) -> Iterator[str]:
    found = page.training
    facts = list(found.facts)
    if found.soaked is not None:
        facts += [("met", met) for met in found.soaked.met]
        facts += [("not met", missed) for missed in found.soaked.not_met]
        facts += [] if found.soaked.passed else [("soak", f"failed: {found.soaked.reason}")]
    if found.verdict:
        yield from ("## The same training?", "", text(found.verdict), "")
        yield from _listed(facts)


def _limits(page: Page) -> Iterator[str]:
    found = page.diagnosed
    if found is None:
        return
    yield from ("## What limits it", "", text(found.verdict), "")
    for one in found.findings:
        yield from _finding(one)
    yield from ("", *_listed(found.numbers))


def _finding(one: FindingDetail) -> Iterator[str]:
    could = f" (could be {one.gain:.2f}× as fast, by {text(one.effort)})" if one.gain else ""
    yield f"- {text(one.title)}{could}"
    for excerpt in one.excerpts:
        yield f"  - {text(excerpt.where)}: {text(excerpt.source)}"
    if one.remedy:
        yield f"  - → {text(one.remedy)}"


def _refused(found: Sequence[Refused]) -> Iterator[str]:
    if not found:
        return
    lines = [
        [one.lever, why(one), units.seconds(one.cost) if one.cost else "–"]
        for one in found
        if one.tried
    ]
    if lines:
        yield from ("## Tried and refused", "")
        yield from table(["optimisation", "why not", "trying took"], lines)
    if left := untried(found):
        yield from ("", "Not tried:", "")
        yield from _listed(left)


def _runs(page: Page) -> Iterator[str]:
    """Only those that searched or failed: the page has them all."""
    shown = [
        one for one in page.trials if one.purpose in ("baseline", "screen", "beside") or one.failed
    ]
    if not shown:
        return
    lines = [
        [
            str(one.number),
            one.words,
            units.seconds(one.step.mean) if one.step else "–",
            one.ratio,
            ": ".join(part for part in (one.outcome or one.state, one.reason) if part),
        ]
        for one in shown
    ]
    yield from ("## What was tried", "")
    yield from table(["run", "what", "a step", "ratio", "outcome"], lines)


def _facts(title: str, facts: Sequence[tuple[str, str]]) -> Iterator[str]:
    yield from (f"## {title}", "", *_listed(facts))


def _listed(facts: Sequence[tuple[str, str]]) -> list[str]:
    return [f"- {text(label)}: {text(words)}" for label, words in facts]
