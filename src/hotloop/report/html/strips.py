"""Small drawings: the pairs of a proof, the spread of a trial's steps, how near a limit is."""

from __future__ import annotations

from markupsafe import Markup

from hotloop.report.every_trial import Spread, interval_words
from hotloop.report.html import svg
from hotloop.report.html.figure import DataTable, Figure, Number, drawn
from hotloop.report.html.scale import Scale
from hotloop.report.proof_rows import Proven

HEIGHT = 112.0


def proof(found: Proven) -> Figure:
    table = DataTable(
        ("pair", "ratio"),
        tuple(
            (Number(str(number), number), Number(f"{ratio:.3f}×", ratio))
            for number, ratio in enumerate(found.ratios, start=1)
        ),
    )
    note = (
        "Each dot is a pair of fresh processes that ran one after the other: the job as it is, and "
        f"the plan. The line with caps is the interval over them. A gain counts from "
        f"{found.counts:.3f}× on here, if all of the interval lies above 1."
    )
    if found.disturbed:
        note += f" Not counted: {found.disturbed}."
    return drawn(
        "proof", "The proof, pair by pair", lambda width: _pairs(found, width), table, note
    )


def _pairs(found: Proven, width: float) -> Markup:
    bounds = [found.gain.low, found.gain.high] if found.gain else []
    values = [1.0, found.counts, *found.ratios, *(bound for bound in bounds if bound is not None)]
    reach = (max(values) - min(values)) * 0.08 or 0.1
    x = Scale(max(min(values) - reach, 0.0), max(values) + reach, 6, width - 6)
    base = HEIGHT - 26
    shapes = [
        svg.line(6, base, width - 6, base, class_="axis"),
        svg.line(x(1), 10, x(1), base, class_="boundary"),
        svg.text(x(1) + 5, 18, "as fast", class_="tick"),
    ]
    for tick in x.ticks(6 if width > 500 else 4):
        css = "tick" if x(tick) < 20 else "tick end" if x(tick) > width - 24 else "tick middle"
        shapes.append(svg.text(x(tick), base + 18, f"{tick:.4g}×", class_=css))
    if found.gain and found.gain.low is not None and found.gain.high is not None:
        tip = f"Interval: {found.gain.low:.3f}× to {found.gain.high:.3f}×"
        shapes.append(svg.mark(tip, svg.whisker(x(found.gain.low), x(found.gain.high), 38, 7)))
    if found.gain:
        middle = svg.circle(x(found.gain.ratio), 38, 5, class_="place best")
        shapes.append(svg.mark(f"Together: {found.gain.ratio:.3f}×", middle))
    for number, ratio in enumerate(found.ratios, start=1):
        dot = svg.circle(x(ratio), 66, 5, class_="dot")
        shapes.append(svg.mark(f"Pair {number}: {ratio:.3f}×", dot))
    whole = f"{len(found.ratios)} pairs, from {min(found.ratios):.3f}× to {max(found.ratios):.3f}×"
    return svg.drawing(width, HEIGHT, whole, *shapes, class_="marks")


def spread(found: Spread, longest: float) -> Markup:
    """A step's time in one process, on the scale of all of them."""
    x = Scale(0.0, longest or 1.0, 2, 118)
    return svg.drawing(
        120,
        16,
        interval_words(found),
        svg.line(2, 8, 118, 8, class_="grid"),
        svg.whisker(x(found.low), x(found.high), 8, 4),
        svg.circle(x(found.mean), 8, 3.5, class_="place"),
        class_="spread",
    )


def closeness(share: float) -> Markup:
    """How far the arithmetic is from the reference, of what would still pass."""
    x = Scale(0.0, max(1.0, share), 0, 320)
    return svg.drawing(
        322,
        26,
        f"{share:.2g} of what would still pass",
        svg.rect(0, 8, 320, 10, class_="track"),
        svg.rect(0, 8, max(x(share), 2), 10, class_="bar best" if share <= 1 else "bar bad"),
        svg.line(x(1.0), 2, x(1.0), 24, class_="boundary"),
        class_="gauge",
    )
