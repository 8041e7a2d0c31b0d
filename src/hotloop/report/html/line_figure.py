"""Curves over a common axis: losses laid over each other, memory over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from hotloop import units
from hotloop.report.html import svg
from hotloop.report.html.figure import Cell, DataTable, Figure, Number, drawn
from hotloop.report.html.scale import Scale, byte_ticks
from hotloop.report.loss_rows import Losses
from hotloop.report.memory_rows import Course

HEIGHT, LEFT, BOTTOM, TOP = 260.0, 58.0, 40.0, 12.0
MOST_ROWS = 60
"""Of the table behind it."""


@dataclass(frozen=True)
class Line:
    name: str
    css: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Axes:
    across: str
    x_words: Callable[[float], str]
    y_words: Callable[[float], str]
    from_zero: bool = False


def losses(found: Losses) -> Figure:
    lines = [Line(one.name, f"curve-{one.role}", one.points) for one in found.curves]
    axes = Axes("backward pass", lambda value: f"{value:.0f}", lambda value: f"{value:.4g}")
    note = (
        "Each curve is a run of its own. Later steps began from the weights of the job as it is, "
        "so that their arithmetic could be compared, and say nothing here."
    )
    title = "The losses, laid over each other" if len(lines) > 1 else "The loss"
    return _figure("losses", title, lines, axes, note if found.free is not None else "")


def memory(found: Course, number: int) -> Figure:
    points = [(at, float(size)) for at, size in found.points]
    axes = Axes("since the trace began", units.seconds, units.size, from_zero=True)
    line = Line(found.device, "curve-reference", points)
    note = "What torch had allocated, under a profiler: times are to be compared, not to be timed."
    return _figure(f"memory-{number}", f"Memory over time, {found.device}", [line], axes, note)


def _figure(key: str, title: str, lines: list[Line], axes: Axes, note: str) -> Figure:
    legend = {line.css: line.name for line in lines} if len(lines) > 1 else {}
    return drawn(
        key,
        title,
        lambda width: _draw(title, lines, axes, width),
        _table(lines, axes),
        note,
        tuple(legend.items()),
    )


def _draw(title: str, lines: list[Line], axes: Axes, width: float) -> Markup:
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    low, high = (0.0 if axes.from_zero else min(ys)), max(ys)
    reach = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    x = Scale(min(xs), max(xs), LEFT, width - 8)
    y = Scale(low if axes.from_zero else low - reach, high + reach, HEIGHT - BOTTOM, TOP)
    curves = [_curve(line, x, y) for line in lines]
    ends = (f"{line.name} from {axes.y_words(line.points[0][1])}" for line in lines)
    last = (f"to {axes.y_words(line.points[-1][1])}" for line in lines)
    told = ", ".join(f"{a} {b}" for a, b in zip(ends, last, strict=True))
    scales = (x.low, x.high, x.start, x.end, y.low, y.high, y.start, y.end)
    return svg.drawing(
        width,
        HEIGHT,
        f"{title}: {told}",
        *_grid(x, y, axes, width),
        *curves,
        class_="lines",
        data_scale=" ".join(f"{number!r}" for number in scales),
        data_across=axes.across,
    )


def _curve(line: Line, x: Scale, y: Scale) -> Markup:
    places = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in line.points)
    return svg.tag("polyline", points=places, class_=line.css, data_name=line.name)


def _grid(x: Scale, y: Scale, axes: Axes, width: float) -> list[Markup]:
    bottom = HEIGHT - BOTTOM
    shapes = []
    for tick in byte_ticks(y, 4) if axes.y_words is units.size else y.ticks(4):
        shapes.append(svg.line(LEFT, y(tick), width - 8, y(tick), class_="grid"))
        shapes.append(svg.text(LEFT - 8, y(tick) + 4, axes.y_words(tick), class_="tick end"))
    for tick in x.ticks(6 if width > 500 else 3):
        at = x(tick)
        css = "tick end" if at > width - 30 else "tick middle"
        shapes.append(svg.text(at, bottom + 16, axes.x_words(tick) if tick else "0", class_=css))
    shapes.append(svg.line(LEFT, bottom, width - 8, bottom, class_="axis"))
    shapes.append(svg.text(width - 8, HEIGHT - 5, axes.across, class_="tick end"))
    return shapes


def _table(lines: list[Line], axes: Axes) -> DataTable:
    """By the first curve's places, where the others have them too."""
    by_name = [(line.name, dict(line.points)) for line in lines]
    all_places = sorted({at for line in lines for at, _ in line.points})
    step = max(1, -(-len(all_places) // MOST_ROWS))
    rows: list[tuple[Cell, ...]] = [
        (
            Number(axes.x_words(at), at),
            *(_cell(values.get(at), axes) for _, values in by_name),
        )
        for at in all_places[::step]
    ]
    return DataTable((axes.across, *(name for name, _ in by_name)), tuple(rows))


def _cell(value: float | None, axes: Axes) -> Number:
    return Number("–" if value is None else axes.y_words(value), value)
