"""How `--help` is laid out: as wide as the terminal is, and not wider."""

from __future__ import annotations

import argparse
import os
import sys

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from typing import Any

USUAL = 80


class Formatter(argparse.HelpFormatter):
    def __init__(self, prog: str, **settings: Any) -> None:
        """argparse would import what packs archives, to ask for the width."""
        super().__init__(prog, **{"width": _columns() - 2, **settings})

    def add_argument(self, action: argparse.Action) -> None:
        """argparse forgets that commands are indented: the longest had lines of their own."""
        super().add_argument(action)
        if isinstance(action, argparse._SubParsersAction):
            self._action_max_length += self._indent_increment

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Paragraphs flow. What is indented is to be copied, and stays as it is."""
        parts = (part.strip("\n") for part in text.split("\n\n"))
        return "\n\n".join(
            part if part.startswith(" ") else super(Formatter, self)._fill_text(part, width, indent)
            for part in parts
        )

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        """What takes all that follows has a name for it, too."""
        if action.nargs == argparse.REMAINDER and action.metavar:
            return str(action.metavar)
        return super()._format_args(action, default_metavar)


def _columns() -> int:
    """Of the terminal. What the user says comes first, as it does everywhere."""
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    try:
        return os.get_terminal_size(sys.__stdout__.fileno()).columns or USUAL  # type: ignore[union-attr]
    except (AttributeError, ValueError, OSError):  # closed, or no terminal
        return USUAL
