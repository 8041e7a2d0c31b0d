"""What a search is going to do, as plain rows, once the job as it is has been measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hotloop import units
from hotloop.search.candidate import Candidate
from hotloop.study import Found, Options, Study, too_small
from hotloop.trial.trial import State
from hotloop.workshop.watching import Outlook


@dataclass(frozen=True)
class OutlookRows:
    sentence: str
    worth: tuple[tuple[str, str], ...]
    """Optimisations that could help, and how much at the most."""
    refused: tuple[tuple[str, str], ...]
    """Those that are not tried, and why."""
    limit: str = ""
    """What limits the job, where it was looked into: what is found there decides what is worth."""


def outlook_rows(study: Study, outlook: Outlook) -> OutlookRows:
    found = study.found
    candidates = found.candidates if found else ()
    at_once = [one for one in candidates if one.worth_from <= 1]
    refused = found.refused if found else ()
    return OutlookRows(
        sentence=_sentence(found, outlook),
        worth=tuple((one.lever, _worth(one, _objective(study))) for one in at_once),
        refused=(
            *((one.lever, one.reason) for one in refused if not one.tried),
            *((one.lever, _later(one)) for one in candidates if one not in at_once),
        ),
        limit=study.diagnosis.verdict if study.diagnosis else _unknown(study),
    )


def _unknown(study: Study) -> str:
    """Why nobody knows what limits the job, where that was asked for."""
    options = study.found.options if study.found else Options()
    looked = any(trial.purpose == "look" for trial in study.trials)
    if not options.look or looked or options.budget is None:
        return ""
    granted = units.seconds(options.budget)
    return f"not known: a --budget of {granted} leaves no time to look for it."


def _sentence(found: Found | None, outlook: Outlook) -> str:
    if found is not None and not found.candidates:
        return "There is nothing to try."
    runs, seconds = _between(*outlook.runs), _times(*outlook.seconds)
    told = f"The search takes about {runs} of the script: {seconds}"
    budget = found.options.budget if found else None
    if budget is None or budget >= outlook.seconds[1]:
        return f"{told}."
    told = f"{told}, of which --budget grants {units.seconds(budget)}"
    if budget >= outlook.to_prove:
        return f"{told}."
    needed = units.seconds(outlook.to_prove)
    return f"{told}: that may be too little for a proof, which takes about {needed}."


def _objective(study: Study) -> str:
    """What candidates could win: of a job that was made to run it is time."""
    found = study.found
    if found is None or found.rescue is not None:
        return "speed"
    starved = any(trial.state is State.OUT_OF_MEMORY for trial in study.trials[:1])
    return "to run" if starved else found.options.objective


def _worth(candidate: Candidate, objective: str) -> str:
    if objective == "to run":
        return "it may make the job fit into memory"
    if objective == "memory" and not candidate.share:
        return "may take less memory by the way: how much is not known beforehand"
    if objective == "memory":
        return f"may save {units.percent(candidate.share)} of its memory at the very most"
    if candidate.predicted is not None:
        saved = units.percent(candidate.predicted)
        return f"may save {saved} of a step's time, by what was found"
    return f"may save {units.percent(candidate.share)} of a step's time at the very most"


def _later(candidate: Candidate) -> str:
    times = math.ceil(candidate.worth_from * 10) / 10
    return f"{too_small(candidate.share)}, unless the job becomes {times:g}× as fast"


def _between(low: int, high: int) -> str:
    if low < high:
        return f"{low} to {high} runs"
    return "1 run" if high == 1 else f"{high} runs"


def _times(low: float, high: float) -> str:
    least, most = units.seconds(low), units.seconds(high)
    return f"{least} to {most}" if least != most else most
