"""Studies in a notebook: the rows of the screens as a little HTML, everything in it escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from hotloop.report.diagnosis_rows import DiagnosisRows
from hotloop.report.profile_rows import ProfileRows
from hotloop.report.search_rows import SCREENED, SearchRows
from hotloop.trial.terminal import harmless

Facts = Sequence[tuple[str, str]]

COLOURS = ("#4477aa", "#66ccee", "#228833", "#ccbb44", "#ee6677", "#aa3377", "#bbbbbb")


def search(name: str, found: SearchRows, left: Facts) -> str:
    """The end of a search."""
    before = [(row.name, row.before, row.text) for row in found.phases]
    head = ("", "own gain", "a step", "an epoch", "memory")
    ladder = [(row.name, row.gain, row.step, row.epoch, row.memory) for row in found.ladder]
    tried = [(row.words, row.value, row.ratio, row.ending) for row in found.tried]
    note = f"<p>{SCREENED} from one process alone</p>" if found.screened else ""
    return _page(
        name,
        found.headline,
        _bar(before),
        _table(head, ladder) + note if ladder else "",
        _table(("tried", "", "", ""), tried) if tried else "",
        _facts([*found.facts, *left]),
    )


def profile(name: str, found: ProfileRows, diagnosis: DiagnosisRows | None, left: Facts) -> str:
    phases = [(row.name, row.share, row.text) for row in found.phases]
    told = diagnosis.numbers if diagnosis else ()
    return _page(
        name,
        "   ".join(found.headline),
        f"<p>a step {_text('   '.join(found.step))}</p>",
        _bar(phases),
        f"<p><b>{_text(diagnosis.verdict)}</b></p>" if diagnosis else "",
        _facts([*told, *found.facts, *left]),
    )


def _page(name: str, headline: str, *parts: str) -> str:
    body = "".join(parts)
    return f"<div><h4>{_text(name)}</h4><p><b>{_text(headline)}</b></p>{body}</div>"


def _bar(phases: Sequence[tuple[str, float, str]]) -> str:
    """Each phase as wide as its share, and its figure beside its name."""
    total = sum(length for _, length, _ in phases)
    if not total:
        return ""
    coloured = list(zip(phases, COLOURS * len(phases), strict=False))
    spans = "".join(
        f'<span style="display:inline-block;height:1em;width:{length / total:.2%};'
        f'background:{colour}"></span>'
        for (_, length, _), colour in coloured
    )
    rows = [
        f'<tr><td style="color:{colour}">■</td><td>{_text(name)}</td><td>{_text(text)}</td></tr>'
        for (name, _, text), colour in coloured
    ]
    return f'<div style="font-size:0">{spans}</div><table>{"".join(rows)}</table>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def _facts(facts: Facts) -> str:
    return f"<table>{''.join(_row('td', fact) for fact in facts)}</table>" if facts else ""


def _row(kind: str, cells: Sequence[str]) -> str:
    inner = "".join(f'<{kind} style="text-align:left">{_text(cell)}</{kind}>' for cell in cells)
    return f"<tr>{inner}</tr>"


def _text(text: str) -> str:
    return escape(harmless(text))
