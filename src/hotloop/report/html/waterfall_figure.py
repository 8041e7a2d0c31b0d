"""The ladder: a step's time as it is, and what each optimisation leaves of it."""

from __future__ import annotations

from markupsafe import Markup

from hotloop.report.html import svg
from hotloop.report.html.figure import DataTable, Figure, Number, drawn
from hotloop.report.html.scale import Scale
from hotloop.report.waterfall_rows import Stage, Waterfall, gain_words

ROW, BAR = 58.0, 16.0
NOTE = (
    "The pale part is what was won against the row above. The line with caps is the interval of "
    "the proof, on pairs of fresh processes. Dashed bars come from one process alone, and prove "
    "nothing."
)


def figure(found: Waterfall) -> Figure:
    what = "peak memory" if found.objective == "memory" else "time of a step"
    return drawn(
        "ladder",
        f"The ladder: {what}",
        lambda width: _draw(found, width),
        _table(found),
        NOTE,
    )


def _draw(found: Waterfall, width: float) -> Markup:
    values = [value for one in found.stages for value in (one.value, one.high) if value]
    scale = Scale(0.0, max(values, default=1.0), 0.0, width - 12.0)
    rows = [_row(found, one, index, scale, width) for index, one in enumerate(found.stages)]
    summary = "; ".join(f"{one.name}: {found.words(one.value)}" for one in found.stages)
    return svg.drawing(width, ROW * len(rows), summary, *rows, class_="marks")


def _row(found: Waterfall, stage: Stage, index: int, scale: Scale, width: float) -> Markup:
    y = index * ROW
    value = found.words(stage.value)
    name = stage.name if index == 0 else f"+ {stage.name}"
    middle = y + 24 + BAR / 2
    shapes = [
        svg.text(0, y + 15, svg.fitted(name, width - svg.room(value) - 24), class_="name"),
        *_own(stage, svg.room(name) + 14, y + 15, width - svg.room(value) - 24),
        svg.text(width, y + 15, f"~{value}" if stage.screened else value, class_="value end"),
        svg.rect(0, y + 24, width, BAR, class_="track"),
    ]
    if stage.value is not None:
        end = scale(stage.value)
        if stage.before is not None and stage.before > stage.value:
            shapes.append(svg.rect(end, y + 24, scale(stage.before) - end, BAR, class_="won"))
        last = index == len(found.stages) - 1
        css = "bar base" if index == 0 else "bar best" if last else "bar"
        css += " alone" if stage.screened else ""
        shapes.append(svg.rect(0, y + 24, end, BAR, class_=css))
    if stage.low is not None and stage.high is not None:
        shapes.append(svg.whisker(scale(stage.low), scale(stage.high), middle, 5))
    return svg.mark(_tip(found, stage), *shapes)


def _own(stage: Stage, x: float, y: float, room: float) -> list[Markup]:
    """Where there is room for it; on a phone it is in the table."""
    words = f"contributes {gain_words(stage.own)}" if stage.own else stage.note
    fits = words and x + svg.room(words, 12) < room
    return [svg.text(x, y, words, class_="quiet")] if fits else []


def _tip(found: Waterfall, stage: Stage) -> str:
    parts = [f"{stage.name}: {found.words(stage.value)}"]
    if stage.low is not None and stage.high is not None:
        parts.append(f"between {found.words(stage.low)} and {found.words(stage.high)}")
    if stage.own is not None:
        pairs = "one pair" if stage.own.pairs == 1 else f"{stage.own.pairs} pairs"
        parts.append(f"its own gain {gain_words(stage.own)}, {pairs}")
    if stage.screened:
        parts.append("from one process alone")
    return " · ".join([*parts, stage.note] if stage.note else parts)


def _table(found: Waterfall) -> DataTable:
    rows = tuple(
        (
            stage.name,
            Number(found.words(stage.value), stage.value),
            _bounds(found, stage),
            Number(gain_words(stage.own) or "–", stage.own.ratio if stage.own else None),
            stage.note or ("one process alone" if stage.screened else ""),
        )
        for stage in found.stages
    )
    what = "memory" if found.objective == "memory" else "a step"
    return DataTable(("optimisation", what, "interval", "own gain", "note"), rows)


def _bounds(found: Waterfall, stage: Stage) -> str:
    if stage.low is None or stage.high is None:
        return "–"
    return f"{found.words(stage.low)} to {found.words(stage.high)}"
