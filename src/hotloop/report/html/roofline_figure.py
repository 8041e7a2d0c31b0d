"""The roofline: how fast the job computes for what it moves, under what the machine can do."""

from __future__ import annotations

from markupsafe import Markup

from hotloop import units
from hotloop.report.html import svg
from hotloop.report.html.figure import DataTable, Figure, Number, drawn
from hotloop.report.html.scale import Scale
from hotloop.report.machine_rows import NAMES
from hotloop.report.roofline_rows import Place, Roofline

HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 340.0, 52.0, 42.0, 14.0, 14.0


def figure(found: Roofline) -> Figure:
    return drawn(
        "roofline",
        "The roofline",
        lambda width: _Drawing(found, width).draw(),
        _table(found),
        _note(found),
    )


class _Drawing:
    def __init__(self, found: Roofline, width: float) -> None:
        self._found, self._width = found, width
        self._compact = width < 500
        """A phone has room for names; their figures are told by pointing, and by the table."""
        ridges = [one.flops / found.bandwidth for one in found.ceilings]
        across = [*ridges, *(place.intensity for place in found.places)]
        up = [*(one.flops for one in found.ceilings), *(place.flops for place in found.places)]
        self._x = Scale(min(across) / 8, max(across) * 8, LEFT, width - RIGHT, is_log=True)
        low = min([*up, self._x.low * found.bandwidth]) / 2
        self._y = Scale(low, max(up) * 3, HEIGHT - BOTTOM, TOP, is_log=True)

    def draw(self) -> Markup:
        found = self._found
        said = (f"{place.label}: {rate(place.flops)}" for place in found.places)
        summary = f"Roofline of {found.device}. {'; '.join(said)}"
        shapes = (*self._grid(), *self._roofs(), *self._places())
        return svg.drawing(self._width, HEIGHT, summary, *shapes, class_="marks")

    def _grid(self) -> list[Markup]:
        x, y = self._x, self._y
        bottom, right = HEIGHT - BOTTOM, self._width - RIGHT
        shapes = []
        for tick in y.ticks():
            shapes.append(svg.line(LEFT, y(tick), right, y(tick), class_="grid"))
            shapes.append(svg.text(LEFT - 8, y(tick) + 4, _short(tick), class_="tick end"))
        for tick in x.ticks():
            shapes.append(svg.line(x(tick), bottom, x(tick), bottom + 4, class_="axis"))
            shapes.append(svg.text(x(tick), bottom + 18, f"{tick:g}", class_="tick middle"))
        shapes.append(svg.line(LEFT, bottom, right, bottom, class_="axis"))
        shapes.append(svg.text(right, HEIGHT - 6, "FLOP for every byte", class_="tick end"))
        shapes.append(svg.text(LEFT + 6, TOP + 2, "FLOP/s", class_="tick"))
        return shapes

    def _roofs(self) -> list[Markup]:
        found, x, y = self._found, self._x, self._y
        shapes, last = [], float("inf")
        for one in found.ceilings:
            ridge = one.flops / found.bandwidth
            name = _roof_name(one.precision, one.flops)
            start, height = x(max(ridge, x.low)), y(one.flops)
            inner = [svg.line(start, height, self._width - RIGHT, height, class_="roof")]
            if abs(height - last) > 14:  # two that lie on each other are told apart by pointing
                inner.append(
                    svg.text(
                        self._width - RIGHT,
                        height - 6,
                        self._shown(name),
                        class_="tick end strong",
                    )
                )
                last = height
            shapes.append(svg.mark(f"At most {name}, measured", *inner))
        top = max(one.flops for one in found.ceilings)
        low = max(x.low, y.low / found.bandwidth)
        slope = svg.line(
            x(low), y(low * found.bandwidth), x(top / found.bandwidth), y(top), class_="roof"
        )
        shapes.append(svg.mark(f"Memory: {units.throughput(found.bandwidth)}, measured", slope))
        return shapes

    def _places(self) -> list[Markup]:
        shapes: list[Markup] = []
        for index, place in enumerate(self._found.places):
            x, y = self._x(place.intensity), self._y(place.flops)
            if index:
                before = self._y(self._found.places[0].flops)
                shapes.append(svg.line(x, before, x, y, class_="moved"))
            css = "place best" if index else "place"
            dot = svg.circle(x, y, 6, class_=css)
            figure = "" if self._compact else f" {rate(place.flops)}"
            label = self._label(f"{place.label}{figure}", x, y + (4 if index else 14))
            shapes.append(svg.mark(_tip(place, self._found), dot, label))
        return shapes

    def _label(self, words: str, x: float, y: float) -> Markup:
        """Beside its dot where there is room and no roof is named, otherwise above it."""
        wide = svg.room(words) + 12
        roofs = [_roof_name(one.precision, one.flops) for one in self._found.ceilings]
        named = max(svg.room(self._shown(name)) for name in roofs)
        if x + wide <= self._width - RIGHT - named:
            return svg.text(x + 12, y, words, class_="name over")
        if x - wide >= LEFT:
            return svg.text(x - 12, y, words, class_="name over end")
        return svg.text(self._width - RIGHT, y - 16, words, class_="name over end")

    def _shown(self, roof: str) -> str:
        return roof.partition(" ")[0] if self._compact else roof


def _roof_name(precision: str, flops: float) -> str:
    return f"{NAMES.get(precision, precision)} {rate(flops)}"


def rate(flops: float) -> str:
    return f"{_short(flops)}FLOP/s"


def _short(value: float) -> str:
    for factor, unit in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}"
    return f"{value:.3g} "


def attainable(found: Roofline, intensity: float) -> float:
    """What a job of this intensity could reach at most, in the fastest precision."""
    return min(intensity * found.bandwidth, max(one.flops for one in found.ceilings))


def _tip(place: Place, found: Roofline) -> str:
    most = attainable(found, place.intensity)
    return (
        f"{place.label}: {rate(place.flops)} at {place.intensity:.3g} FLOP a byte, "
        f"{place.flops / most:.0%} of what could be reached there"
    )


def _note(found: Roofline) -> str:
    parts = ["Bytes are counted as if nothing were fused or cached, for the job as it is."]
    if found.lower_bound:
        parts.append("Some operators have no formula: the job computes at least this much.")
    if len(found.places) > 1:
        parts.append("The plan computes the same in less time; what it moves was not counted.")
    busy = " beside other work, so it may be too low" if found.disturbed else ""
    parts.append(f"The roof was measured on {found.measured_on}{busy}.")
    return " ".join(parts)


def _table(found: Roofline) -> DataTable:
    roofs = [
        (f"roof, {NAMES.get(one.precision, one.precision)}", Number(rate(one.flops), one.flops), "")
        for one in found.ceilings
    ]
    places = [
        (place.label, Number(rate(place.flops), place.flops), f"{place.intensity:.3g}")
        for place in found.places
    ]
    bandwidth = f"memory, {units.throughput(found.bandwidth)}"
    return DataTable(
        ("", "FLOP/s", "FLOP a byte"), (*places, *roofs, (bandwidth, Number("", None), ""))
    )
