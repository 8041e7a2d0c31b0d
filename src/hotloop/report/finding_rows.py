"""All findings of a diagnosis, each with its lines of source, as plain rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hotloop.diagnose.base import Finding
from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.inspection import Frame
from hotloop.report.diagnosis_rows import place


@dataclass(frozen=True)
class Excerpt:
    where: str
    """As an editor opens it: "train.py:12"."""
    function: str
    source: str
    """Empty where it was not kept."""


@dataclass(frozen=True)
class FindingDetail:
    title: str
    share: float | None
    """Of a step that would be gone without it. None for a remark."""
    gain: float | None
    effort: str
    excerpts: tuple[Excerpt, ...]
    evidence: tuple[str, ...]
    remedy: str
    levers: tuple[str, ...]


def rows(diagnosis: Diagnosis, folder: str) -> tuple[FindingDetail, ...]:
    """`folder`: where the job runs; files inside it are shown without it."""
    return tuple(_row(finding, folder) for finding in diagnosis.findings)


def _row(finding: Finding, folder: str) -> FindingDetail:
    return FindingDetail(
        title=finding.title,
        share=finding.share if finding.is_limit else None,
        gain=finding.gain if finding.is_limit else None,
        effort=finding.effort.value,
        excerpts=tuple(_excerpt(frame, folder) for frame in finding.places),
        evidence=finding.evidence,
        remedy=finding.remedy,
        levers=finding.levers,
    )


def _excerpt(frame: Frame, folder: str) -> Excerpt:
    return Excerpt(place(replace(frame, source=""), folder), frame.function, frame.source)
