from __future__ import annotations

from dataclasses import replace

from hotloop import codec
from hotloop.measurement import Events, Memory
from hotloop.search.climb import BudgetSpent
from hotloop.trial.trial import State, Trial
from hotloop.workshop.scores import DISTURBED, score_of, undisturbed
from tests import builders


def slowed(times: float) -> Trial:
    events = builders.training().events
    later = [int(at * times) for at in events.time_ns]
    slow = Events(later, events.kind, events.key, events.n)
    return builders.trial(measurement=builders.measurement(slow))


def never() -> Trial:
    raise AssertionError("there is no need")


def test_one_process_will_do_where_nothing_disturbed_it() -> None:
    first = builders.trial()
    for looked in (None, builders.trial(), slowed(3.0), slowed(1.01 / DISTURBED)):
        assert undisturbed(first, looked, "speed", never) is first


def test_a_job_that_something_else_slowed_down_is_measured_again() -> None:
    """Else whatever comes next seems to make it faster, and the wrong thing to limit it."""
    again = builders.trial()
    assert undisturbed(slowed(5.0), builders.trial(), "speed", lambda: again) is again


def test_memory_that_a_worker_takes_is_not_saved() -> None:
    """Two loader workers moved what an item needs out of the main process: 462 MiB became 309."""
    alone, beside = Memory(host_peak=462), Memory(host_peak=309, children_peak=337)
    by_itself, with_workers = (
        score_of(builders.trial(measurement=builders.measurement(memory=memory)), "memory")
        for memory in (alone, beside)
    )
    assert (by_itself.value, with_workers.value) == (462.0, 646.0)


def test_the_gpus_memory_is_what_counts_where_it_is_used() -> None:
    def value(allocated: int) -> float | None:
        memory = Memory(host_peak=9, device_peak_allocated=allocated, children_peak=5)
        trial = builders.trial(measurement=builders.measurement(memory=memory))
        return score_of(trial, "memory").value

    assert value(3) == 3.0
    assert value(0) == 14.0  # it was started, and nothing trains there


def test_memory_that_was_kept_before_children_counted_is_the_scripts_own() -> None:
    kept = codec.decode(b'{"host_peak": 462, "worker_peaks": [394]}', Memory)
    assert (kept.peak, kept.counts_children) == (462, False)


def test_the_first_stands_where_the_second_is_no_faster_or_came_to_nothing() -> None:
    def out_of_time() -> Trial:
        raise BudgetSpent

    first = slowed(5.0)
    failed = replace(builders.trial(), state=State.CRASHED)
    for again in (lambda: slowed(9.0), lambda: failed, out_of_time):
        assert undisturbed(first, builders.trial(), "speed", again) is first
    assert undisturbed(first, failed, "speed", never) is first
    assert undisturbed(failed, builders.trial(), "speed", never) is failed
