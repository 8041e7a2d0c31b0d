"""How `--help` is laid out: as wide as the terminal is, and not wider."""

from __future__ import annotations

import argparse


class Formatter(argparse.HelpFormatter):
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
