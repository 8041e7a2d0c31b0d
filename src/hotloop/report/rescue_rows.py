"""A job that runs out of memory as it is: what makes it run, and what is shown of it, as rows."""

from __future__ import annotations

from hotloop import units
from hotloop.report.plan_words import plan_words
from hotloop.report.search_figures import Pace
from hotloop.search.rescue import Attempt, Rescue
from hotloop.study import Found


def headline(found: Found, pace: Pace | None) -> str:
    """The verdict, and how fast and how large the job then is."""
    if pace is None:
        return found.verdict
    memory = f", {units.size(pace.memory)}" if pace.memory is not None else ""
    return f"{found.verdict} {units.seconds(pace.step_seconds)} a step{memory}."


def facts(found: Rescue) -> list[tuple[str, str]]:
    """Label and text. Labels may repeat."""
    return [
        ("as it is", found.ended),
        *(("attempt", _attempt(one)) for one in found.tried),
        *(("shown", sentence) for sentence in found.shown),
        *(("not shown", sentence) for sentence in found.not_shown),
    ]


def _attempt(one: Attempt) -> str:
    return f"{plan_words(one.plan)}: {'it runs' if one.ran else one.reason}"
