"""The timed trial's steady state: its steps, and the calls of one kind during them."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop import compiling, timeline
from hotloop.diagnose.base import Case
from hotloop.measurement import Events, Kind
from hotloop.timeline import Step


@dataclass(frozen=True)
class Span:
    """One call that a probe saw, from its begin to its end."""

    begin_ns: int
    end_ns: int
    key: int
    n: int

    @property
    def seconds(self) -> float:
        return (self.end_ns - self.begin_ns) / 1e9


def steady_steps(case: Case) -> list[Step]:
    """On the clock of the figures, which stood still while code was compiled that stays."""
    events = compiling.events_without(case.measurement)
    return timeline.steps(events)[case.figures.warm_up_steps :]


def steady_spans(case: Case, begin: Kind) -> list[Span]:
    """Calls of this kind that began in the steady state."""
    first, last = _window(case)
    found = spans(case.measurement.events, begin)
    return [span for span in found if first <= span.begin_ns <= last]


def spans(events: Events, begin: Kind) -> list[Span]:
    """In the order of their ends. One inside another of its kind ends before it."""
    found: list[Span] = []
    open_at: list[int] = []
    for index, kind in enumerate(events.kind):
        if kind == begin:
            open_at.append(events.time_ns[index])
        elif kind == begin + 1 and open_at:
            key, n = events.key[index], events.n[index]
            found.append(Span(open_at.pop(), events.time_ns[index], key, n))
    return found


def step_ends(events: Events) -> list[int]:
    """When each step ended, on the clock of the events."""
    return events.times_at(timeline.step_ends(events))


def _window(case: Case) -> tuple[int, int]:
    events = case.measurement.events
    ends, warm = step_ends(events), case.figures.warm_up_steps
    return (ends[warm - 1] if warm else events.time_ns[0]), ends[-1]
