from __future__ import annotations

import sys
import threading
import time
from collections.abc import Generator
from types import FrameType
from typing import Any

import pytest

from hotloop.inspection import Samples
from hotloop.runtime.look.frames import Frames, Places, places
from hotloop.runtime.look.sampler import Sampler


def by_function(samples: Samples) -> dict[str, float]:
    spent: dict[str, float] = {}
    for stack, weight in zip(samples.stack, samples.weight_ns, strict=True):
        inner = samples.frames[samples.stacks[stack][-1]].function
        spent[inner] = spent.get(inner, 0.0) + weight / 1e9
    return spent


def work(seconds: float) -> None:
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        sum(range(50))


def nap(seconds: float) -> None:
    time.sleep(seconds)


def test_time_goes_where_it_was_spent() -> None:
    sampler = Sampler()
    began = time.perf_counter()
    sampler.start()
    worked = 0.0
    for _ in range(40):
        since = time.perf_counter()
        work(0.012)
        worked += time.perf_counter() - since
        nap(0.004)  # gives Python's lock away: a careless sampler would find this line alone
    sampler.stop()
    took = time.perf_counter() - began
    spent = by_function(sampler.samples)
    assert spent["work"] > 0.3 * worked
    assert 0.5 * took < sum(spent.values()) <= took


def test_columns_agree_and_times_are_on_the_clock_of_events() -> None:
    began = time.perf_counter_ns()
    sampler = Sampler()
    sampler.start()
    nap(0.05)
    sampler.stop()
    samples = sampler.samples
    assert len(samples.time_ns) == len(samples.stack) == len(samples.weight_ns) > 0
    assert all(began < time_ns < time.perf_counter_ns() for time_ns in samples.time_ns)
    assert samples.time_ns == sorted(samples.time_ns)


def test_only_the_thread_that_made_it_is_watched() -> None:
    other = threading.Thread(target=work, args=(0.1,))
    sampler = Sampler()
    sampler.start()
    other.start()
    nap(0.1)
    other.join()
    sampler.stop()
    assert "work" not in by_function(sampler.samples)


def test_nothing_of_it_is_left_behind() -> None:
    patience, threads = sys.getswitchinterval(), threading.active_count()
    sampler = Sampler()
    sampler.start()
    assert threading.active_count() == threads + 1
    sampler.stop()
    sampler.stop()
    assert (sys.getswitchinterval(), threading.active_count()) == (patience, threads)


def test_equal_stacks_as_one_while_it_goes_on() -> None:
    sampler = Sampler()
    sampler.start()
    for _ in range(10):
        nap(0.01)
        together = sampler.by_stack()
        assert len(together.stack) == len(together.weight_ns) == len(together.stacks)
    sampler.stop()
    assert sum(sampler.by_stack().weight_ns) == sum(sampler.samples.weight_ns)
    assert by_function(sampler.by_stack()) == pytest.approx(by_function(sampler.samples))


def lines() -> Generator[int, None, None]:
    yield 1
    yield 2
    yield 3


def shown(monkeypatch: pytest.MonkeyPatch, moves: int) -> Sampler:
    """One that sees a generator, which goes on so often between two times that it is looked at."""
    sampler, left = Sampler(), [moves]
    watched: Any = lines()
    next(watched)

    def current() -> dict[int, FrameType]:
        return {threading.get_ident(): watched.gi_frame}

    def go_on(frame: FrameType) -> Places:
        found = places(frame)
        if left[0]:
            left[0] -= 1
            next(watched)
        return found

    monkeypatch.setattr(sys, "_current_frames", current)
    monkeypatch.setattr("hotloop.runtime.look.sampler.places", go_on)
    return sampler


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_a_stack_that_went_on_while_it_was_looked_at_is_looked_at_again(
    monkeypatch: pytest.MonkeyPatch, moves: int
) -> None:
    seen = shown(monkeypatch, moves)._look()
    assert seen is not None
    frames = Frames()
    (number,) = frames.numbered(seen[1][:1])
    assert frames.known[number].source == f"yield {moves + 1}"


def test_and_is_not_counted_where_it_never_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hotloop.runtime.look.sampler.LOOKS", 2)
    assert shown(monkeypatch, 2)._look() is None
