"""What limits a job, with what became of the promise that its diagnosis made."""

from __future__ import annotations

from hotloop.diagnose.base import Finding
from hotloop.study import NO_TIME, Found, Study


def limit_words(study: Study) -> str:
    """Empty without a diagnosis."""
    if study.diagnosis is None:
        return ""
    findings = study.diagnosis.findings
    tried = _in_vain(findings[0], study.found) if findings and study.found else ""
    verdict = study.diagnosis.verdict
    return f"{verdict.rstrip('.')}; {tried}." if tried else verdict


def _in_vain(finding: Finding, found: Found) -> str:
    """Where a search has refused all that addresses it, as far as it applies to the job."""
    named = set(finding.levers)
    kept = {one.lever for one in found.plan.levers} if found.plan else set()
    late = {one.lever for one in found.refused if one.reason == NO_TIME}
    late |= set(found.climb.untried) if found.climb else set()
    tried = [one for one in found.refused if one.tried and one.lever in named]
    if not found.verdict or not tried or named & (kept | late):
        return ""
    if len(tried) == 1:
        return f"tried: {tried[0].lever}, {tried[0].reason.rstrip('.')}"
    return f"tried, and refused: {', '.join(one.lever for one in tried)}"
