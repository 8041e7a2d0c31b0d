"""What came of looking at one thing that can spoil a measurement."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    OK = "ok"
    WARNING = "warning"
    UNKNOWN = "unknown"
    """It could not be read. Not the same as in order."""


@dataclass(frozen=True)
class Check:
    name: str
    status: Status
    evidence: str
    """What was read, with its numbers."""
    remedy: str = ""
    """What to do about a warning; how to find out what is unknown, if there is a way."""


def ok(name: str, evidence: str) -> Check:
    return Check(name, Status.OK, evidence)


def warning(name: str, evidence: str, remedy: str) -> Check:
    return Check(name, Status.WARNING, evidence, remedy)


def unknown(name: str, evidence: str, remedy: str = "") -> Check:
    return Check(name, Status.UNKNOWN, evidence, remedy)


def gib(size: float) -> str:
    return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.0f} MiB"
