"""What a section of the report is made of. The template knows how each of these looks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from markupsafe import Markup

from hotloop.report.every_trial import TrialDetail
from hotloop.report.finding_rows import FindingDetail
from hotloop.report.html.figure import DataTable, Figure


@dataclass(frozen=True)
class Drawn:
    kind: ClassVar[str] = "figure"
    figure: Figure
    open_table: bool = False
    """The data stands below it rather than behind a click: it is short, and worth reading."""


@dataclass(frozen=True)
class Said:
    kind: ClassVar[str] = "said"
    text: str
    tone: str = ""


@dataclass(frozen=True)
class Listed:
    """Labels and texts. A label that repeats is shown once."""

    kind: ClassVar[str] = "listed"
    rows: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Tabled:
    kind: ClassVar[str] = "tabled"
    key: str
    caption: str
    table: DataTable
    drawings: tuple[tuple[Markup, str] | None, ...] = ()
    """One for each row, with its words, in a column of its own. Empty: there is no such column."""
    drawn_head: str = ""
    links: tuple[str, ...] = ()
    """Where the first cell of each row leads to."""
    failed: frozenset[int] = frozenset()
    """Rows that are about something that failed."""


@dataclass(frozen=True)
class Found:
    kind: ClassVar[str] = "found"
    findings: tuple[FindingDetail, ...]


@dataclass(frozen=True)
class Checked:
    kind: ClassVar[str] = "checked"
    points: tuple[tuple[str, str, str], ...]
    """Status, name and evidence."""


@dataclass(frozen=True)
class Logged:
    """Receipts and what was printed, one trial after the other."""

    kind: ClassVar[str] = "logged"
    trials: tuple[TrialDetail, ...]


@dataclass(frozen=True)
class Gauged:
    kind: ClassVar[str] = "gauged"
    label: str
    drawing: Markup
    text: str


@dataclass(frozen=True)
class Typed:
    """Commands and files, to be copied."""

    kind: ClassVar[str] = "typed"
    rows: tuple[tuple[str, str], ...]


Block = Drawn | Said | Listed | Tabled | Found | Checked | Logged | Gauged | Typed


@dataclass(frozen=True)
class Section:
    key: str
    title: str
    blocks: tuple[Block, ...]
    lead: str = ""
