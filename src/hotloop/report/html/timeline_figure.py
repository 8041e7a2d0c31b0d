"""Two steps as they passed: a row for the CPU, one for copies, one for the GPU. Gaps are idle."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from hotloop import units
from hotloop.report.html import svg
from hotloop.report.html.figure import DataTable, Figure, Number, drawn
from hotloop.report.html.scale import Scale
from hotloop.report.two_steps import Bar, Lane, TwoSteps

LANE, BAR, TOP, AXIS = 46.0, 22.0, 20.0, 26.0
MOST_ROWS = 120
"""Of the table behind it: kernels may be thousands."""


def figures(found: Sequence[TwoSteps]) -> list[Figure]:
    """Those that were timed are on one scale: what is shorter is shorter."""
    longest = max((one.seconds for one in found if one.timed), default=1.0)
    return [
        _figure(one, number, longest if one.timed else one.seconds)
        for number, one in enumerate(found, start=1)
    ]


def _figure(found: TwoSteps, number: int, longest: float) -> Figure:
    legend = {bar.phase: bar.label for lane in found.lanes for bar in lane.bars}
    legend = {f"phase-{phase}": _meaning(phase, label) for phase, label in legend.items()}
    return drawn(
        f"timeline-{number}",
        f"Two steps, {found.label}",
        lambda width: _draw(found, longest, width),
        _table(found),
        found.note,
        tuple(legend.items()),
    )


def _meaning(phase: str, label: str) -> str:
    return "kernels" if phase == "kernel" else label


def _draw(found: TwoSteps, longest: float, width: float) -> Markup:
    scale = Scale(0.0, longest, 0.0, width)
    height = TOP + LANE * len(found.lanes) + AXIS
    end, boundary = scale(found.seconds), scale(found.boundary)
    lanes = [_lane(lane, TOP + LANE * at, scale, end) for at, lane in enumerate(found.lanes)]
    idle = [
        f"{lane.name} at work {units.percent(lane.busy() / found.seconds)}" for lane in found.lanes
    ]
    return svg.drawing(
        width,
        height,
        f"Two steps in {units.seconds(found.seconds)}: {', '.join(idle)}",
        *_step_names(boundary),
        *lanes,
        svg.line(boundary, 0, boundary, height - AXIS, class_="boundary"),
        *_axis(scale, height - AXIS),
        class_="marks",
    )


def _step_names(boundary: float) -> list[Markup]:
    """Where both have room: short steps beside long ones say enough by being short."""
    if boundary < svg.room("step 1", 11.5):
        return []
    return [
        svg.text(0, 12, "step 1", class_="tick"),
        svg.text(boundary + 4, 12, "step 2", class_="tick"),
    ]


def _lane(lane: Lane, y: float, scale: Scale, end: float) -> Markup:
    bars = [_bar(lane.name, bar, y + 14, scale) for bar in lane.bars]
    return svg.tag(
        "g",
        svg.text(0, y + 10, lane.name, class_="tick"),
        svg.rect(0, y + 14, end, BAR, class_="idle"),
        *bars,
    )


def _bar(lane: str, bar: Bar, y: float, scale: Scale) -> Markup:
    left, right = scale(bar.begin), scale(bar.end)
    length = bar.end - bar.begin
    tip = f"{lane}, {bar.label}: {units.seconds(length)}, from {units.seconds(bar.begin)} on"
    return svg.mark(
        tip, svg.rect(left, y, max(right - left, 0.6), BAR, class_=f"phase-{bar.phase}")
    )


def _axis(scale: Scale, y: float) -> list[Markup]:
    """All of it, also where the steps are over: that is what was won."""
    ticks = scale.ticks(6 if scale.end > 500 else 3)
    return [
        svg.line(0, y, scale.end, y, class_="axis"),
        *(svg.line(scale(tick), y, scale(tick), y + 4, class_="axis") for tick in ticks),
        *(
            svg.text(
                scale(tick),
                y + 18,
                units.seconds(tick) if tick else "0",
                class_=_anchor(scale, tick),
            )
            for tick in ticks
        ),
    ]


def _anchor(scale: Scale, tick: float) -> str:
    at = scale(tick)
    return "tick" if at < 12 else "tick end" if at > scale.end - 24 else "tick middle"


def _table(found: TwoSteps) -> DataTable:
    bars = [(lane.name, bar) for lane in found.lanes for bar in lane.bars]
    dearest = sorted(bars, key=lambda one: one[1].begin - one[1].end)[:MOST_ROWS]
    rows = tuple(
        (
            lane,
            bar.label,
            Number(units.seconds(bar.begin), bar.begin),
            Number(units.seconds(bar.end - bar.begin), bar.end - bar.begin),
        )
        for lane, bar in bars
        if (lane, bar) in dearest
    )
    return DataTable(("row", "what", "begins", "takes"), rows)
