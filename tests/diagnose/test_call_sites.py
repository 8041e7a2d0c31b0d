from __future__ import annotations

from hotloop.diagnose.call_sites import (
    MOST_PLACES,
    at_the_loader,
    dearest_lines,
    distinct,
    in_the_dataset,
    in_the_loop,
    is_idle,
)
from hotloop.diagnose.sightings import Sighting
from hotloop.inspection import Frame
from tests.diagnose.making import MAIN, NEXT, library, users

START = users(99, "<module>", "main()")
FORWARD = users(12, "main", "loss = model(x)")
BACKWARD = users(13, "main", "loss.backward()")
LAYER = users(50, "Net.forward")
CALL = users(20, "main", "validate(model)")
INSIDE = users(60, "validate")
GENERATOR = users(30, "forever", "yield from loader")
ITEM = users(40, "Pictures.__getitem__")
LOOP = library("torch/utils/data/_utils/worker.py", "_worker_loop")


def seen(phase: str, seconds: float, *stack: Frame) -> Sighting:
    return Sighting(phase, (START, *stack), seconds)


def test_the_loop_is_the_innermost_function_that_trains() -> None:
    every = [
        seen("forward", 4, FORWARD, LAYER),
        seen("backward", 5, BACKWARD),
        seen("evaluation", 9, CALL, INSIDE),
    ]
    assert in_the_loop(every, lambda one: one.phase == "evaluation") == [CALL]
    assert in_the_loop(every, lambda one: one.phase == "forward") == [FORWARD]
    assert in_the_loop([], lambda one: True) == []


def test_where_batches_are_drawn_and_what_draws_them() -> None:
    drawn = [seen("data", 2, MAIN, GENERATOR, NEXT, ITEM)]
    assert at_the_loader(drawn) == [GENERATOR, MAIN]
    assert in_the_dataset(drawn) == [ITEM]
    assert at_the_loader([seen("data", 2, MAIN)]) == []


def test_what_was_seen_once_or_twice_is_not_what_it_is_about() -> None:
    passes = users(11, "main", "outputs = model(x)")
    drawn = [seen("data", 0.9, MAIN, NEXT, ITEM), seen("data", 0.02, passes, NEXT, ITEM)]
    assert at_the_loader(drawn) == [MAIN]  # and not what calls the training
    tested = [
        seen("forward", 4, FORWARD),
        seen("evaluation", 9, CALL),
        seen("evaluation", 0.1, BACKWARD),
    ]
    assert in_the_loop(tested, lambda one: one.phase == "evaluation") == [CALL]
    assert dearest_lines([*drawn, *tested], lambda one: one.phase != "data") == [CALL, FORWARD]


def test_a_worker_waits_or_works() -> None:
    queue = library("multiprocessing/queues.py", "Queue.get")
    assert is_idle(seen("", 1, MAIN, NEXT, LOOP, queue))
    assert not is_idle(seen("", 1, MAIN, NEXT, LOOP, ITEM, queue))
    assert not is_idle(seen("", 1, MAIN))


def test_what_looking_takes_of_a_worker_is_no_loading() -> None:
    assert is_idle(seen("", 1, MAIN, NEXT, LOOP))
    assert is_idle(seen("", 1, MAIN, NEXT, LOOP, library("python3.11/dataclasses.py", "asdict")))


def test_a_line_is_shown_once_and_not_too_many_are() -> None:
    assert distinct([MAIN, ITEM, MAIN]) == (MAIN, ITEM)
    assert len(distinct(users(i) for i in range(20))) == MOST_PLACES
