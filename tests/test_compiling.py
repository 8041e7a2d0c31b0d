from __future__ import annotations

import pytest

from hotloop import compiling
from hotloop.figures import figures, step_times
from hotloop.measurement import Events, Measurement, Spans
from tests.builders import measurement, training

MS = 1_000_000


def at(events: Events, *spans: tuple[float, float]) -> Measurement:
    """Compiled in these spans of milliseconds after the first event."""
    first = events.time_ns[0]
    begins, ends = ([first + round(one[side] * MS) for one in spans] for side in (0, 1))
    return measurement(events, compiling=Spans(begins, ends))


def test_a_step_in_which_code_was_compiled_is_as_long_as_the_others() -> None:
    """An epoch's last batch is shorter, and what was compiled did not fit it."""
    log = training(10)
    whole = len(log.events)
    log.data(4, 5).forward(5, 5).wait(800).backward(8).optimizer(3)
    for _ in range(10):
        log.step()
    begin = (log.events.time_ns[whole] - log.events.time_ns[0]) / MS + 9
    plain, told = figures(measurement(log.events)), at(log.events, (begin, begin + 800))
    found = figures(told)
    assert plain is not None
    assert found is not None
    assert plain.step.mean > 0.05
    assert found.step.mean == pytest.approx(0.020)
    assert found.one_off_seconds == pytest.approx(0.8)
    times = step_times(told)
    assert times is not None
    assert (times.step, times.one_off_seconds) == (found.step, found.one_off_seconds)


def test_spans_that_overlap_count_once() -> None:
    events = training(3).events
    found = at(events, (5, 9), (6, 7), (8, 10), (30, 31))
    assert compiling.seconds(found) == pytest.approx(0.006)
    last = events.time_ns[-1] - compiling.events_without(found).time_ns[-1]
    assert last == 6 * MS


def test_only_what_lies_among_the_events_counts() -> None:
    events = training(3).events
    length = (events.time_ns[-1] - events.time_ns[0]) / MS
    found = at(events, (-50, -10), (-5, 2), (length + 5, length + 9))
    assert compiling.seconds(found) == pytest.approx(0.002)
    without = compiling.events_without(found).time_ns
    assert without[-1] - without[0] == events.time_ns[-1] - events.time_ns[0] - 2 * MS
    assert compiling.seconds(measurement(Events(), compiling=Spans([1], [2]))) == 0.0


def test_where_nothing_was_compiled_nothing_is_changed() -> None:
    found = measurement(training(3).events)
    assert compiling.events_without(found) is found.events
    assert compiling.seconds(found) == 0.0
