"""The colours of the report: few, each with one meaning, legible in the light and in the dark."""

from __future__ import annotations

import re

LIGHT = {
    "paper": "#fdfdfb",
    "panel": "#f4f4f0",
    "ink": "#17191c",
    "soft": "#565c63",
    "hair": "#dfe0dc",
    "track": "#ecece7",
    "good": "#0a6b4c",
    "good-pale": "#b9dccf",
    "bad": "#a8261c",
    "base": "#8a9097",
    "focus": "#1d4ed8",
    "data": "#d98e04",
    "copy": "#b4528f",
    "forward": "#12866b",
    "backward": "#2563a8",
    "optimizer": "#6a8fc5",
    "evaluation": "#9a7b4f",
    "kernel": "#2f6f8f",
    "rest": "#b4b8bc",
    "inside": "#ffffff",
    "inside-dark": "#17191c",
}
DARK = {
    "paper": "#121416",
    "panel": "#1a1d20",
    "ink": "#e9eaeb",
    "soft": "#a3aab1",
    "hair": "#2c3135",
    "track": "#23272b",
    "good": "#57c79c",
    "good-pale": "#22503f",
    "bad": "#f0857c",
    "base": "#7c848c",
    "focus": "#8ab4ff",
    "data": "#e3a63a",
    "copy": "#cf7fb2",
    "forward": "#46b596",
    "backward": "#6ea5e0",
    "optimizer": "#9db9e3",
    "evaluation": "#c4a87c",
    "kernel": "#6fb0cd",
    "rest": "#5a6168",
    "inside": "#121416",
    "inside-dark": "#121416",
}


def variables() -> str:
    """As a style sheet says them: by what the reader's system prefers, or as the page was told."""
    light, dark = _declared(LIGHT), _declared(DARK)
    return (
        f":root{{color-scheme:light dark;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
        f":root[data-theme=light]{{color-scheme:light;{light}}}\n"
        f"@media print{{:root,:root[data-theme=dark],:root:not([data-theme=light]){{{light}}}}}\n"
    )


def resolved(style: str) -> str:
    """A style sheet for programs that know no variables, in the light colours."""
    return re.sub(r"var\(--([\w-]+)\)", lambda found: LIGHT[found[1]], style)


def _declared(colours: dict[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())
