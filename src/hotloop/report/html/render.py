"""The page as text: the template filled in, with its style and script inlined and vouched for."""

from __future__ import annotations

import base64
import hashlib
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from hotloop.report.html import colours
from hotloop.report.html.blocks import Drawn
from hotloop.report.html.figure import Figure, Number
from hotloop.report.html.sections import sections
from hotloop.report.html.standalone import standalone
from hotloop.report.html.svg import plain
from hotloop.report.page import Page
from hotloop.version import VERSION

MARKS = {"passed": "✓", "failed": "✗", "unknown": "?", "not applicable": "–"}


def render(page: Page) -> str:
    """One file that needs nothing else."""
    environment = _environment()
    looks = (_asset(environment, name) for name in ("figure.css", "style.css"))
    style, script = colours.variables() + "".join(looks), _asset(environment, "script.js")
    return environment.get_template("page.html.j2").render(
        page=page,
        sections=sections(page),
        style=Markup(style),
        script=Markup(script),
        style_hash=_digest(style),
        script_hash=_digest(script),
        marks=MARKS,
        version=VERSION,
    )


def figures(page: Page) -> list[Figure]:
    """All of the page's, to be saved one by one."""
    blocks = [block for section in sections(page) for block in section.blocks]
    return [block.figure for block in blocks if isinstance(block, Drawn)]


def picture(figure: Figure) -> str:
    """As a file of its own."""
    return standalone(figure, _asset(_environment(), "figure.css"))


def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("hotloop.report.html"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_harmless,
    )


def _harmless(value: Any) -> Any:
    """Whatever a study says is shown as text, without what would reorder or hide it."""
    if isinstance(value, Number):
        value = value.text
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _asset(environment: Environment, name: str) -> str:
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0]


def _digest(text: str) -> str:
    """What the page's own policy allows to run: this, and nothing else."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"
