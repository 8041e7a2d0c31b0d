"""Throughput and memory over the batch size, where it was searched: only sizes that were run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from hotloop import units
from hotloop.report.html import svg
from hotloop.report.html.figure import Cell, DataTable, Figure, Number, drawn
from hotloop.report.html.scale import Scale, byte_ticks
from hotloop.search.batch_sizes import Curve, SizePoint

PANEL, LEFT, GAP, BOTTOM = 150.0, 64.0, 34.0, 40.0
NOTE = (
    "Every size was really run. A cross is one that did not come to its end; the full dot is where "
    "the plateau begins: larger batches win less than 3%."
)


def figure(found: Curve) -> Figure:
    title = "Throughput and memory over the batch size"
    return drawn("sizes", title, lambda width: _draw(found, width), _table(found), NOTE)


def _draw(found: Curve, width: float) -> Markup:
    points = found.points
    sizes = [point.size for point in points]
    x = Scale(min(sizes), max(sizes), LEFT + 10, width - 14, is_log=True)
    rates = [(point, point.rate) for point in points if point.rate is not None]
    memory = [(point, float(point.memory)) for point in points if point.memory is not None]
    panels = [_panel("samples/s", rates, found, x, 0.0, units.rate, width)]
    if memory:
        top = PANEL + GAP
        panels.append(_panel("peak memory", memory, found, x, top, units.size, width))
    height = len(panels) * (PANEL + GAP) - GAP + BOTTOM
    failed = [_cross(point, x(point.size)) for point in points if point.rate is None]
    best = found.best
    told = f"{best.size} is the fastest, {units.rate(best.rate or 0.0)} samples/s" if best else ""
    summary = f"{len(points)} batch sizes from {min(sizes)} to {max(sizes)}. {told}"
    axis = _axis(points, x, height - BOTTOM, width)
    return svg.drawing(width, height, summary, *panels, *failed, *axis, class_="marks")


def _panel(
    name: str,
    values: Sequence[tuple[SizePoint, float]],
    found: Curve,
    x: Scale,
    top: float,
    words: Callable[[float], str],
    width: float,
) -> Markup:
    y = Scale(0.0, max((value for _, value in values), default=1.0) * 1.08, top + PANEL, top + 16)
    shapes = [svg.text(LEFT, top + 8, name, class_="tick")]
    for tick in byte_ticks(y) if words is units.size else y.ticks(3):
        shapes.append(svg.line(LEFT, y(tick), width, y(tick), class_="grid"))
        label = words(tick) if tick else "0"
        shapes.append(svg.text(LEFT - 8, y(tick) + 4, label, class_="tick end"))
    places = " ".join(f"{x(point.size):.1f},{y(value):.1f}" for point, value in values)
    shapes.append(svg.tag("polyline", points=places, class_="curve-reference"))
    for point, value in values:
        css = "place best" if point == found.plateau else "place"
        dot = svg.circle(x(point.size), y(value), 4.5, class_=css)
        shapes.append(svg.mark(f"Batch {point.size}: {words(value)} {_unit(name)}".strip(), dot))
    return svg.tag("g", *shapes)


def _unit(name: str) -> str:
    return name if name == "samples/s" else ""


def _cross(point: SizePoint, x: float) -> Markup:
    y = PANEL - 8
    strokes = (
        svg.line(x - 5, y - 5, x + 5, y + 5, class_="cross"),
        svg.line(x - 5, y + 5, x + 5, y - 5, class_="cross"),
    )
    return svg.mark(f"Batch {point.size}: {point.reason}", *strokes)


def _axis(points: Sequence[SizePoint], x: Scale, y: float, width: float) -> list[Markup]:
    """The sizes themselves, as far as their labels leave each other room."""
    shapes = [svg.line(LEFT, y, width, y, class_="axis")]
    last = -1e9
    for point in points:
        at, room = x(point.size), svg.room(str(point.size), 11.5)
        if at - last > room + 4:
            shapes.append(svg.text(at, y + 16, str(point.size), class_="tick middle"))
            last = at
    return [*shapes, svg.text(width, y + 34, "samples in a batch", class_="tick end")]


def _table(found: Curve) -> DataTable:
    rows: list[tuple[Cell, ...]] = [
        (
            Number(str(point.size), point.size),
            Number("–" if point.rate is None else units.rate(point.rate), point.rate),
            Number("unknown" if point.memory is None else units.size(point.memory), point.memory),
            "where the plateau begins" if point == found.plateau else point.reason,
        )
        for point in found.points
    ]
    return DataTable(("batch size", "samples/s", "peak memory", "note"), tuple(rows))
