"""Memory over a step: kinds laid on each other, the phases of the step above them."""

from __future__ import annotations

from itertools import pairwise

from markupsafe import Markup

from hotloop import units
from hotloop.report.html import svg
from hotloop.report.html.figure import Cell, DataTable, Figure, Number, drawn
from hotloop.report.html.scale import Scale, byte_ticks
from hotloop.report.step_memory_rows import KINDS, NAMES, PHASES, Moment, StepCourse, highest_words

HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 300.0, 62.0, 8.0, 26.0, 40.0
MOST_ROWS = 60
"""Of the table behind it."""


def figure(found: StepCourse) -> Figure:
    side = "as it is, on the GPU" if found.where == "GPU" else "as it is"
    return drawn(
        "memory-step",
        f"Memory over a step, by kind, {side}",
        lambda width: _draw(found, width),
        _table(found),
        f"{highest_words(found)} {found.note}",
        tuple((f"kind-{kind}", NAMES[kind]) for kind in KINDS),
    )


def _draw(found: StepCourse, width: float) -> Markup:
    x = Scale(0.0, found.length, LEFT, width - RIGHT)
    y = Scale(0.0, found.highest.together * 1.06 or 1.0, HEIGHT - BOTTOM, TOP)
    return svg.drawing(
        width,
        HEIGHT,
        f"Memory over a step. {highest_words(found)}",
        *_grid(x, y, found.timed, width),
        *(_area(found, kind, x, y) for kind in range(len(KINDS))),
        *_phases(found, x, y),
        *_slices(found, x, y),
        svg.line(LEFT, y(0), width - RIGHT, y(0), class_="axis"),
        class_="marks",
    )


def _area(found: StepCourse, kind: int, x: Scale, y: Scale) -> Markup:
    """Between the kinds below it and itself."""
    below = [(x(one.at), y(sum(one.held[:kind]))) for one in found.moments]
    above = [(x(one.at), y(sum(one.held[: kind + 1]))) for one in found.moments]
    places = " ".join(f"{a:.1f},{b:.1f}" for a, b in (*above, *reversed(below)))
    return svg.tag("polygon", points=places, class_=f"kind-{KINDS[kind]}")


def _slices(found: StepCourse, x: Scale, y: Scale) -> list[Markup]:
    """One a moment, seen only when it is pointed at."""
    edges = [x(one.at) for one in found.moments]
    middles = [(a + b) / 2 for a, b in pairwise(edges)]
    bounds = [LEFT, *middles, x(found.length)]
    return [
        svg.mark(
            _tip(found, one),
            svg.rect(left, y.end, right - left, y.start - y.end, class_="slice"),
        )
        for one, left, right in zip(found.moments, bounds, bounds[1:], strict=False)
    ]


def _tip(found: StepCourse, one: Moment) -> str:
    kinds = " · ".join(
        f"{NAMES[kind]} {units.size(size)}"
        for kind, size in zip(KINDS, one.held, strict=True)
        if size
    )
    return f"{_at(found, one)}, {PHASES.get(one.phase, one.phase)}: {_size(one)} · {kinds}"


def _size(one: Moment) -> str:
    return units.size(one.together)


def _at(found: StepCourse, one: Moment) -> str:
    return units.seconds(one.at) if found.timed else f"{one.at:.0f}"


def _phases(found: StepCourse, x: Scale, y: Scale) -> list[Markup]:
    shapes = []
    for stretch in found.stretches:
        left, right = x(stretch.begin), x(stretch.end)
        if stretch.begin:
            shapes.append(svg.line(left, TOP - 8, left, y.start, class_="boundary"))
        words = PHASES.get(stretch.phase, stretch.phase)
        if right - left > svg.room(words, 11.5):
            shapes.append(svg.text(left + 4, TOP - 10, words, class_="tick"))
    # Many microbatches would be a fence of lines.
    return shapes if len(found.stretches) <= 12 else []


def _grid(x: Scale, y: Scale, timed: bool, width: float) -> list[Markup]:
    shapes = []
    for tick in byte_ticks(y, 4):
        words = units.size(tick) if tick else "0"
        shapes.append(svg.line(LEFT, y(tick), width - RIGHT, y(tick), class_="grid"))
        shapes.append(svg.text(LEFT - 8, y(tick) + 4, words, class_="tick end"))
    for tick in x.ticks(6 if width > 500 else 3):
        words = (units.seconds(tick) if timed else f"{tick:.0f}") if tick else "0"
        css = "tick end" if x(tick) > width - 30 else "tick middle"
        shapes.append(svg.text(x(tick), HEIGHT - BOTTOM + 16, words, class_=css))
    across = "of a step" if timed else "operators of a step"
    return [*shapes, svg.text(width - RIGHT, HEIGHT - 5, across, class_="tick end")]


def _table(found: StepCourse) -> DataTable:
    """The highest of each stretch, so that the peak is among them."""
    width = max(1, -(-len(found.moments) // MOST_ROWS))
    places = range(0, len(found.moments), width)
    shown = [max(found.moments[at : at + width], key=lambda one: one.together) for at in places]
    rows: list[tuple[Cell, ...]] = [
        (
            Number(_at(found, one), one.at),
            PHASES.get(one.phase, one.phase),
            *(Number(units.size(size), size) for size in one.held),
            Number(_size(one), one.together),
        )
        for one in shown
    ]
    head = ("of a step", "phase", *(NAMES[kind] for kind in KINDS), "together")
    return DataTable(head, tuple(rows))
