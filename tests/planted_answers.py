"""Is what a diagnosis says first of a planted job what was planted, and where?"""

from __future__ import annotations

from pathlib import PurePath

from planted.suite import Planted

from hotloop.diagnose.base import Finding
from hotloop.diagnose.diagnosis import Diagnosis


def problem(planted: Planted, diagnosis: Diagnosis) -> str:
    """Empty where all is as it should be."""
    found = _first(planted, diagnosis)
    if not planted.rule:
        return "" if found is None else f"found {found.rule}: {found.title}"
    if found is None:
        return f"found nothing: {diagnosis.verdict}"
    waits = planted.rule == "waiting_for_data"
    if found.rule != planted.rule or (waits and found.cause != planted.cause):
        return f"found {found.rule} {found.cause}: {found.title}"
    if not planted.wins_time:
        return ""  # which line keeps the memory is not known: --depth python tells
    name = planted.source.name
    lines = [place.line for place in found.places if PurePath(place.file).name == name]
    return "" if planted.line in (None, *lines) else f"found it in {lines}"


def _first(planted: Planted, diagnosis: Diagnosis) -> Finding | None:
    """The finding that stands first; a remark only where nothing but memory is at stake."""
    found = [one for one in diagnosis.findings if one.is_limit or not planted.wins_time]
    return found[0] if found else None
