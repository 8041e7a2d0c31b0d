from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hotloop import compiling, timeline
from hotloop.figures import figures, step_times
from hotloop.measurement import Events, Kind, Measurement, Spans
from tests.builders import Log, measurement, on_gpu, training

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


class TestWhatTheScriptCompiles:
    """Its own code, by a torch.compile of its own."""

    @staticmethod
    def run(*steps: int, ms: float = 400) -> Measurement:
        """Sixty steps; these compile for so long before their forward pass is over."""
        log, spans = Log(), Spans()
        for number in range(60):
            log.data(4, 8)
            begin = log.wait(1).now
            log.wait(ms * (number in steps)).mark(Kind.FORWARD_BEGIN, 0, 8)
            if number in steps:
                spans.begin_ns.append(begin)
                spans.end_ns.append(begin + round(ms * MS))
            log.wait(4).mark(Kind.FORWARD_END, 0, 8).backward(8).optimizer(3)
        return measurement(log.events, script_compiling=spans)

    @pytest.mark.parametrize("steps", [(0, 40), (0, 31, 32), (0, 1, 2, 3, 31, 32), (50,), (59,)])
    def test_what_stays_comes_once(self, steps: tuple[int, ...]) -> None:
        """At a short batch, at the evaluation behind it: no matter where a short trial ends."""
        told = self.run(*steps)
        found, times = figures(told), step_times(told)
        assert found is not None and times is not None
        assert not compiling.lasts(told)
        assert found.step.mean == times.step.mean == pytest.approx(0.020)
        assert found.one_off_seconds == pytest.approx(0.4 * len(steps))
        assert found.compiling_seconds == found.one_off_seconds == times.one_off_seconds

    @pytest.mark.parametrize("steps", [range(60), range(0, 60, 4), range(20, 60), (0, 9, 25, 50)])
    def test_what_comes_again_and_again_is_what_steps_take(self, steps: Sequence[int]) -> None:
        told = self.run(*steps)
        found, times = figures(told), step_times(told)
        assert found is not None and times is not None
        assert compiling.lasts(told)
        assert compiling.seconds(told) == 0.0
        assert found.step.mean == pytest.approx(times.step.mean)
        assert found.step.mean > 0.022
        assert found.compiling_seconds <= found.one_off_seconds
        # Asked for, it can still be told apart.
        plain = timeline.steps(compiling.events_without_any(told))
        assert [step.seconds for step in plain[1:]] == pytest.approx([0.020] * 59)

    def test_the_gpus_clock_tells_nothing_of_a_step_that_compiled(self) -> None:
        told = self.run(0, 40)
        events = told.events
        timed = replace(told, gpu=on_gpu(events, Kind.FORWARD_BEGIN, Kind.OPTIMIZER_END))
        found = figures(timed)
        assert found is not None
        assert sum(phase.seconds for phase in found.gpu_phases) == pytest.approx(0.020)
        assert compiling.gpu_without(measurement(gpu=timed.gpu)) is timed.gpu
