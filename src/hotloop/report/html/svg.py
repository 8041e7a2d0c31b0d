"""SVG written by hand. Whatever stands in a study becomes text or an attribute, never markup."""

from __future__ import annotations

import math

from markupsafe import Markup, escape

from hotloop.trial.terminal import harmless


def plain(text: str) -> str:
    """Text that shows as what it is, in a page as on a terminal."""
    return harmless(text)


def tag(name: str, *children: Markup | str, **attributes: object) -> Markup:
    """`class_` and `data_tip` are spelled class and data-tip; what is None is left out."""
    given = Markup("").join(
        Markup(' {}="{}"').format(_spelled(key), _value(value))
        for key, value in attributes.items()
        if value is not None
    )
    inner = Markup("").join(
        child if isinstance(child, Markup) else escape(plain(child)) for child in children
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), given, inner)


def drawing(width: float, height: float, summary: str, *children: Markup, **more: object) -> Markup:
    """`summary`: what it shows, for those who cannot see it."""
    return tag(
        "svg",
        *children,
        viewBox=f"0 0 {_number(width)} {_number(height)}",
        width=width,
        height=height,
        role="img",
        aria_label=summary,
        **more,
    )


def rect(x: float, y: float, width: float, height: float, **more: object) -> Markup:
    return tag("rect", x=x, y=y, width=max(width, 0.0), height=max(height, 0.0), **more)


def line(x1: float, y1: float, x2: float, y2: float, **more: object) -> Markup:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, **more)


def text(x: float, y: float, words: str, **more: object) -> Markup:
    return tag("text", words, x=x, y=y, **more)


def circle(x: float, y: float, r: float, **more: object) -> Markup:
    return tag("circle", cx=x, cy=y, r=r, **more)


def mark(tip: str, *shapes: Markup) -> Markup:
    """Something that can be pointed at: the script shows `tip` beside it."""
    return tag("g", *shapes, class_="mark", data_tip=tip)


def whisker(low: float, high: float, y: float, reach: float, css: str = "whisker") -> Markup:
    """An interval, from `low` to `high`, with a cap at either end."""
    strokes = (
        line(low, y, high, y),
        line(low, y - reach, low, y + reach),
        line(high, y - reach, high, y + reach),
    )
    # Twice, the wider one in the colour of the paper: it is seen on dark bars too.
    return tag("g", tag("g", *strokes, class_="halo"), *strokes, class_=css)


WIDTH = 0.64
"""Of a letter, in its size, at the most: there is no browser to ask yet, and fonts differ."""


def room(words: str, size: float = 13.0) -> float:
    """About how wide a text is."""
    return WIDTH * size * len(words)


def fitted(words: str, width: float, size: float = 13.0) -> str:
    """Cut to the width that there is."""
    most = max(1, int(width / (WIDTH * size)))
    return words if len(words) <= most else words[: most - 1] + "…"


def _spelled(name: str) -> Markup:
    kept = {"viewBox": "viewBox"}
    return Markup(kept.get(name, name.rstrip("_").replace("_", "-")))


def _value(value: object) -> str:
    if isinstance(value, float | int) and not isinstance(value, bool):
        return _number(value)
    return plain(str(value))


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise ValueError("a figure is too large to be drawn")
    return f"{value:.2f}".rstrip("0").rstrip(".")
