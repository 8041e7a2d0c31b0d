"""An experiment's figure as an SVG that stands by itself: bars or lines, nothing to load."""

from __future__ import annotations

import math

from markupsafe import Markup

from hotloop.experiments.base import Figure
from hotloop.report.html import svg

WIDTH = 760.0
LINES = 420.0
"""The height of a figure of lines. Bars lie on their side, and take what they need."""
LEFT, RIGHT, TOP, BOTTOM = 80.0, 24.0, 48.0, 96.0
BAR, SPACE = 16.0, 8.0
"""Of a bar, and between two groups of them."""
NUMBER = 92.0
"""Room for the number behind a bar."""
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777")
INK, FAINT = "#222222", "#cccccc"
FONT = {"font_family": "sans-serif", "fill": INK}


def drawn(figure: Figure) -> str:
    labels = list(dict.fromkeys(label for one in figure.series for label, _ in one.points))
    if figure.kind == "bars":
        parts, height = _bars(figure, labels)
    else:
        parts, height = _lines(figure, labels), LINES
    legend, below = _legend(figure, height - 40.0 if figure.kind == "lines" else height + 16.0)
    height = max(height, below)
    title = svg.text(
        16 if figure.kind == "bars" else LEFT,
        24,
        figure.title,
        font_size=16,
        font_weight="bold",
        **FONT,
    )
    paper = svg.rect(0, 0, WIDTH, height, fill="#ffffff")
    summary = f"{figure.title}, in {figure.unit}"
    shapes = (paper, title, *parts, *legend)
    body = svg.drawing(WIDTH, height, summary, *shapes, xmlns="http://www.w3.org/2000/svg")
    return str(body) + "\n"


def _bars(figure: Figure, labels: list[str]) -> tuple[list[Markup], float]:
    """A line for every bar, so that names of any length and number can be read; and the height."""
    heights = [height for one in figure.series for _, height in one.points]
    begin = min(16.0 + max((svg.room(label, 12) for label in labels), default=0.0), WIDTH / 2)
    scale = (WIDTH - begin - NUMBER) / max([*heights, 1e-300])
    shapes, y = [], TOP
    for label in labels:
        own = [
            (number, value)
            for number, one in enumerate(figure.series)
            for name, value in one.points
            if name == label
        ]
        middle = y + BAR * len(own) / 2 + 4
        named = svg.fitted(label, begin - 15.0, 12)
        shapes.append(svg.text(begin - 8, middle, named, font_size=12, text_anchor="end", **FONT))
        for number, value in own:
            wide, colour = max(value, 0.0) * scale, COLOURS[number % len(COLOURS)]
            told = _told(value, figure.unit)
            shapes.append(svg.rect(begin, y, wide, BAR - 2, fill=colour))
            shapes.append(svg.text(begin + wide + 6, y + 11, told, font_size=11, **FONT))
            y += BAR
        y += SPACE
    shapes.append(svg.line(begin, TOP - 4, begin, y - 4, stroke=INK))
    return shapes, y + 8.0


def _told(value: float, unit: str) -> str:
    number = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return number + unit if unit in ("×", "%") else f"{number} {unit}"


def _lines(figure: Figure, labels: list[str]) -> list[Markup]:
    top = _round_up(max((h for one in figure.series for _, h in one.points), default=1.0))
    shapes = [*_axis(top, figure.unit), *_names(labels)]
    for number, series in enumerate(figure.series):
        colour = COLOURS[number % len(COLOURS)]
        points = [(_x(labels.index(label), labels), _y(h, top)) for label, h in series.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        shapes.append(svg.tag("polyline", points=path, fill="none", stroke=colour, stroke_width=2))
        shapes += [svg.circle(x, y, 4, fill=colour) for x, y in points]
    return shapes


def _axis(top: float, unit: str) -> list[Markup]:
    marks = []
    for part in range(5):
        value = top * part / 4
        y = _y(value, top)
        marks += [
            svg.line(LEFT, y, WIDTH - RIGHT, y, stroke=FAINT),
            svg.text(LEFT - 8, y + 4, f"{value:.4g}", font_size=12, text_anchor="end", **FONT),
        ]
    return [*marks, svg.text(LEFT - 8, TOP - 10, unit, font_size=12, text_anchor="end", **FONT)]


def _names(labels: list[str]) -> list[Markup]:
    y, room = LINES - BOTTOM + 18, 1.4 * _room(labels)
    return [
        svg.text(
            _x(place, labels),
            y,
            svg.fitted(label, room, 12),
            font_size=12,
            text_anchor="middle",
            **FONT,
        )
        for place, label in enumerate(labels)
    ]


def _legend(figure: Figure, y: float) -> tuple[list[Markup], float]:
    """And where it ends. One series needs none."""
    if len(figure.series) < 2:
        return [], 0.0
    shapes, x = [], LEFT
    for number, series in enumerate(figure.series):
        wide = svg.room(series.name, 12) + 34
        if x + wide > WIDTH - RIGHT:
            x, y = LEFT, y + 20
        shapes += [
            svg.rect(x, y - 10, 12, 12, fill=COLOURS[number % len(COLOURS)]),
            svg.text(x + 18, y, series.name, font_size=12, **FONT),
        ]
        x += wide
    return shapes, y + 16.0


def _room(labels: list[str]) -> float:
    return (WIDTH - LEFT - RIGHT) / max(len(labels), 1)


def _x(place: int, labels: list[str]) -> float:
    return LEFT + (place + 0.5) * _room(labels)


def _y(value: float, top: float) -> float:
    return LINES - BOTTOM - (LINES - BOTTOM - TOP) * value / top


def _round_up(value: float) -> float:
    """To a number that four marks divide well."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(
        step * unit for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10) if step * unit >= value
    )
