"""A figure as a file of its own, with what the page says around it: its title and its legend."""

from __future__ import annotations

import re

from markupsafe import Markup

from hotloop.report.html import colours, svg
from hotloop.report.html.figure import Figure

EDGE, HEAD, LINE, SWATCH = 24.0, 58.0, 24.0, 11.0
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def standalone(figure: Figure, style: str) -> str:
    """In the colours of the light page. `style`: what figures look like."""
    width, height = size(figure.wide)
    legend, lines = _legend(figure, width)
    whole_height = HEAD + height + lines * LINE + EDGE
    look = Markup("<style>{}</style>").format(Markup(colours.resolved(style)))
    ground = svg.rect(0, 0, width + 2 * EDGE, whole_height, fill=colours.LIGHT["paper"])
    title = svg.text(EDGE, 34, figure.title, class_="title")
    drawn = svg.drawing(
        width + 2 * EDGE,
        whole_height,
        figure.title,
        look,
        ground,
        title,
        _placed(figure.wide),
        svg.tag("g", *legend, transform=f"translate({EDGE:g} {HEAD + height:g})"),
        xmlns="http://www.w3.org/2000/svg",
    )
    return f"{drawn}\n"


def size(drawing: str) -> tuple[float, float]:
    """Width and height of one of ours."""
    found = _SIZE.search(drawing)
    assert found is not None, "every drawing says how large it is"
    return float(found[1]), float(found[2])


def _placed(drawing: Markup) -> Markup:
    """Nothing is cut off at its edge: the page shows it so, too."""
    place = f'<svg x="{EDGE:g}" y="{HEAD:g}" overflow="visible"'
    return Markup(str(drawing).replace("<svg", place, 1))


def _legend(figure: Figure, width: float) -> tuple[list[Markup], int]:
    """Its entries, and how many lines they take."""
    shapes: list[Markup] = []
    x, line = 0.0, 1
    for css, meaning in figure.legend:
        takes = SWATCH + 8 + svg.room(meaning, 12) + 16
        if x and x + takes > width:
            x, line = 0.0, line + 1
        y = line * LINE
        shapes.append(svg.rect(x, y - 10, SWATCH, SWATCH, class_=f"swatch {css}"))
        shapes.append(svg.text(x + SWATCH + 6, y, meaning, class_="quiet"))
        x += takes
    return shapes, line if shapes else 0
