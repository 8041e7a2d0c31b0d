"""An experiment's figure as an SVG that stands by itself: bars or lines, nothing to load."""

from __future__ import annotations

import math

from markupsafe import Markup

from hotloop.experiments.base import Figure
from hotloop.report.html import svg

WIDTH, HEIGHT = 760.0, 420.0
LEFT, RIGHT, TOP, BOTTOM = 80.0, 24.0, 48.0, 96.0
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#777777")
INK, FAINT = "#222222", "#cccccc"
FONT = {"font_family": "sans-serif", "fill": INK}


def drawn(figure: Figure) -> str:
    labels = list(dict.fromkeys(label for one in figure.series for label, _ in one.points))
    heights = [height for one in figure.series for _, height in one.points]
    top = _round_up(max(heights, default=1.0))
    parts = [
        svg.rect(0, 0, WIDTH, HEIGHT, fill="#ffffff"),
        svg.text(LEFT, 24, figure.title, font_size=16, font_weight="bold", **FONT),
        *_axis(top, figure.unit),
        *_names(labels),
        *(_bars if figure.kind == "bars" else _lines)(figure, labels, top),
        *_legend(figure),
    ]
    summary = f"{figure.title}, in {figure.unit}"
    body = svg.drawing(WIDTH, HEIGHT, summary, *parts, xmlns="http://www.w3.org/2000/svg")
    return str(body) + "\n"


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
    room = _room(labels)
    return [
        svg.text(
            _x(place, labels),
            HEIGHT - BOTTOM + 18,
            svg.fitted(label, 1.4 * room, 12),
            font_size=12,
            text_anchor="middle",
            **FONT,
        )
        for place, label in enumerate(labels)
    ]


def _bars(figure: Figure, labels: list[str], top: float) -> list[Markup]:
    wide = 0.8 * _room(labels) / max(len(figure.series), 1)
    bars = []
    for number, series in enumerate(figure.series):
        for label, height in series.points:
            begin = _x(labels.index(label), labels) - 0.4 * _room(labels) + number * wide
            y = _y(height, top)
            colour = COLOURS[number % len(COLOURS)]
            bars += [
                svg.rect(begin, y, wide * 0.94, HEIGHT - BOTTOM - y, fill=colour),
                svg.text(
                    begin + wide / 2, y - 4, f"{height:.3g}",
                    font_size=11, text_anchor="middle", **FONT,
                ),
            ]  # fmt: skip
    return bars


def _lines(figure: Figure, labels: list[str], top: float) -> list[Markup]:
    shapes = []
    for number, series in enumerate(figure.series):
        colour = COLOURS[number % len(COLOURS)]
        points = [(_x(labels.index(label), labels), _y(h, top)) for label, h in series.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        shapes.append(svg.tag("polyline", points=path, fill="none", stroke=colour, stroke_width=2))
        shapes += [svg.circle(x, y, 4, fill=colour) for x, y in points]
    return shapes


def _legend(figure: Figure) -> list[Markup]:
    if len(figure.series) < 2:
        return []
    shapes, x, y = [], LEFT, HEIGHT - 40.0
    for number, series in enumerate(figure.series):
        wide = svg.room(series.name, 12) + 34
        if x + wide > WIDTH - RIGHT:
            x, y = LEFT, y + 20
        shapes += [
            svg.rect(x, y - 10, 12, 12, fill=COLOURS[number % len(COLOURS)]),
            svg.text(x + 18, y, series.name, font_size=12, **FONT),
        ]
        x += wide
    return shapes


def _room(labels: list[str]) -> float:
    return (WIDTH - LEFT - RIGHT) / max(len(labels), 1)


def _x(place: int, labels: list[str]) -> float:
    return LEFT + (place + 0.5) * _room(labels)


def _y(value: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * value / top


def _round_up(value: float) -> float:
    """To a number that four marks divide well."""
    if value <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next(
        step * unit for step in (1, 1.2, 1.6, 2, 2.4, 3.2, 4, 5, 6, 8, 10) if step * unit >= value
    )
