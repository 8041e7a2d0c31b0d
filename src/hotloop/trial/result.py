"""What a child leaves behind: how the script ended, and what was measured until then."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from hotloop.depth import DepthReport
from hotloop.evidence import Evidence, SoakSeen
from hotloop.inspection import Inspection
from hotloop.levers.base import Receipt
from hotloop.measurement import Measurement


class Ended(StrEnum):
    ENOUGH = "enough"
    """The stop rule was satisfied."""
    SCRIPT = "script"
    """The script came to its own end."""


@dataclass(frozen=True)
class Failure:
    """The exception that ended the script."""

    kind: str
    message: str
    is_syntax: bool = False
    is_host_memory: bool = False
    is_device_memory: bool = False
    is_ours: bool = False
    """Raised by hotloop's own code: a bug of ours, not of the script."""
    remedy: str = ""
    """Of a job that was found to be wrong, as the user is told; the message says what it is."""


@dataclass(frozen=True)
class ChildResult:
    ended: Ended
    failure: Failure | None = None
    measurement: Measurement = field(default_factory=Measurement)
    receipts: list[Receipt] = field(default_factory=list)
    evidence: Evidence | None = None
    soak: SoakSeen | None = None
    inspection: Inspection | None = None
    deep: DepthReport | None = None
