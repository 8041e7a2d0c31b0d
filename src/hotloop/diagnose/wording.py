"""Numbers as they stand in a finding's sentences, and its title as it stands in another's."""

from __future__ import annotations

from pathlib import PurePath

from hotloop.inspection import Frame
from hotloop.units import seconds, size

__all__ = ["at", "in_a_sentence", "percent", "seconds", "size", "times"]


def percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def at(line: Frame) -> str:
    """ "train.py:12"."""
    return f"{PurePath(line.file).name}:{line.line}"


def times(count: float, what: str) -> str:
    """ "1 worker", "3 workers"."""
    shown = f"{count:,.0f}" if count >= 10 or count == round(count) else f"{count:.1f}"
    return f"{shown} {what}{'' if shown == '1' else 's'}"


def in_a_sentence(title: str) -> str:
    """A title before or behind a colon: what its own colon announces goes into brackets."""
    statement, colon, what = title.partition(": ")
    return f"{statement} ({what})" if colon else title
