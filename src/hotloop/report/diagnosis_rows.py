"""What a diagnosis has to say, as plain rows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from hotloop.diagnose.base import Finding
from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.inspection import Frame
from hotloop.report.number_rows import number_rows

MOST_FINDINGS = 4
MOST_EVIDENCE = 3
MOST_PLACES = 3


@dataclass(frozen=True)
class FindingRow:
    title: str
    gain: str
    """Empty for a remark."""
    effort: str
    places: tuple[str, ...]
    evidence: tuple[str, ...]
    remedy: str
    levers: tuple[str, ...]


@dataclass(frozen=True)
class DiagnosisRows:
    verdict: str
    limits: tuple[FindingRow, ...]
    remarks: tuple[FindingRow, ...]
    more: int
    """Findings that are not shown."""
    checklist: tuple[tuple[str, str, str], ...]
    """Status, name and evidence."""
    numbers: tuple[tuple[str, str], ...] = ()
    """Label and text."""


def rows(diagnosis: Diagnosis, folder: str = "", on_gpu: bool = False) -> DiagnosisRows:
    """`folder`: where the job runs; files inside it are shown without it."""
    limits = [finding for finding in diagnosis.findings if finding.is_limit]
    remarks = [finding for finding in diagnosis.findings if not finding.is_limit]
    return DiagnosisRows(
        verdict=diagnosis.verdict,
        limits=tuple(_row(finding, folder) for finding in limits[:MOST_FINDINGS]),
        remarks=tuple(_row(finding, folder) for finding in remarks),
        more=max(0, len(limits) - MOST_FINDINGS),
        checklist=tuple(
            (point.status, point.name, point.evidence) for point in diagnosis.checklist
        ),
        numbers=number_rows(diagnosis.numbers, on_gpu),
    )


def place(frame: Frame, folder: str = "") -> str:
    """As an editor opens it, and what stands there."""
    inside = folder and frame.file.startswith(folder + os.sep)
    file = os.path.relpath(frame.file, folder) if inside else frame.file
    return f"{file}:{frame.line}" + (f"  {frame.source}" if frame.source else "")


def plain(value: Diagnosis | None) -> dict[str, Any] | None:
    """For machines: as it is, each finding with the gain that follows from its share."""
    if value is None:
        return None
    return {
        "verdict": value.verdict,
        "findings": [
            {
                **{name: getattr(one, name) for name in Finding.__dataclass_fields__},
                "gain": one.gain,
            }
            for one in value.findings
        ],
        "checklist": value.checklist,
        "numbers": value.numbers,
    }


def _row(finding: Finding, folder: str) -> FindingRow:
    return FindingRow(
        title=finding.title,
        gain=f"{finding.gain:.2f}×" if finding.is_limit else "",
        effort=finding.effort.value,
        places=tuple(place(frame, folder) for frame in finding.places[:MOST_PLACES]),
        evidence=finding.evidence[:MOST_EVIDENCE],
        remedy=finding.remedy,
        levers=finding.levers,
    )
