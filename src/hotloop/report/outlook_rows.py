"""What a search is going to do, as plain rows, once the job as it is has been measured."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop import units
from hotloop.search.climb import Candidate
from hotloop.study import Study


@dataclass(frozen=True)
class OutlookRows:
    sentence: str
    worth: tuple[tuple[str, str], ...]
    """Optimisations that could help, and how much at the most."""
    refused: tuple[tuple[str, str], ...]
    """Those that are not tried, and why."""


def outlook_rows(study: Study, runs: tuple[int, int], seconds: tuple[float, float]) -> OutlookRows:
    found = study.found
    candidates = found.candidates if found else ()
    refused = found.refused if found else ()
    return OutlookRows(
        sentence=f"About {_between(*runs)} runs of the script, {_times(*seconds)}.",
        worth=tuple((one.lever, _worth(one)) for one in candidates),
        refused=tuple((one.lever, one.reason) for one in refused if not one.tried),
    )


def _worth(candidate: Candidate) -> str:
    if candidate.predicted is not None:
        return f"{units.percent(candidate.predicted)} of a step's time, by what was found"
    return f"{units.percent(candidate.share)} of a step's time, at the very most"


def _between(low: int, high: int) -> str:
    return f"{low} to {high}" if low < high else f"{high}"


def _times(low: float, high: float) -> str:
    least, most = units.seconds(low), units.seconds(high)
    return f"{least} to {most}" if least != most else most
