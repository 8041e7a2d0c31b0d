from __future__ import annotations

import pytest

from hotloop.diagnose.rules.evaluation import evaluation
from hotloop.inspection import Inspection
from tests.builders import Log, loader
from tests.diagnose.making import case, samples, users

TRAIN, CALL = users(50, "main"), users(58, "main", "accuracy(model)")
INSIDE = users(20, "accuracy", "model(x)")


def evaluated(every: int, ms: float, first: float = 0.0) -> Log:
    log = Log()
    if first:
        log.no_grad(first)
    for number in range(1, 41):
        log.forward(5, 8).backward(8).optimizer(7)
        if number % every == 0:
            log.no_grad(ms)
    return log.forward(5, 8).backward(8).optimizer(7)


def test_it_takes_more_of_the_run_than_training() -> None:
    seen = samples((2, 5, [TRAIN]), (10, 8, [TRAIN]), (90, 80, [CALL, INSIDE]))
    finding = evaluation(case(evaluated(4, 120), Inspection(samples=seen), loaders=[]))
    assert finding is not None
    # 120 ms for every four steps of 20.
    assert finding.share == pytest.approx(0.6, abs=0.01)
    assert "of the run" in finding.title
    assert finding.places == (CALL, INSIDE)


def test_lines_that_take_hardly_any_of_it_are_not_named() -> None:
    train, drawn = [TRAIN], users(49, "main", "for x, y in train_loader:")
    seen = samples((2, 5, train), (10, 8, train), (85, 2, [drawn]), (90, 80, [CALL, INSIDE]))
    finding = evaluation(case(evaluated(4, 120), Inspection(samples=seen), loaders=[]))
    assert finding is not None and finding.places == (CALL, INSIDE)


def test_without_a_loader_it_may_be_something_else() -> None:
    by_hand = evaluation(case(evaluated(4, 120), loaders=[]))
    assert by_hand is not None and "playing" in by_hand.title and "at a time" in by_hand.remedy
    on_data = evaluation(case(evaluated(4, 120), loaders=[loader()]))
    assert on_data is not None and on_data.title.endswith("goes to evaluation")


def test_many_steps_are_written_out() -> None:
    log = Log()
    for number in range(1, 4001):
        log.forward(0.5, 8).backward(0.5).optimizer(0.5)
        if number % 1300 == 0:
            log.no_grad(2000)
    finding = evaluation(case(log.forward(0.5, 8).backward(0.5).optimizer(0.5), loaders=[]))
    assert finding is not None and finding.evidence[0].startswith("every 1,300 steps, for ")


def test_now_and_then_is_no_matter() -> None:
    assert evaluation(case(evaluated(40, 40), loaders=[])) is None


def test_one_before_the_first_step_happens_once() -> None:
    assert evaluation(case(evaluated(100, 0, first=5000), loaders=[])) is None


def after_the_first_step(steps: int, every: int) -> Log:
    """As many scripts do it: when the number of the step can be divided, and so can zero."""
    log = Log()
    for number in range(steps):
        log.forward(5, 8).backward(8).optimizer(7)
        if number % every == 0:
            log.no_grad(2000)
    return log


def test_one_alone_does_not_tell_how_often() -> None:
    assert evaluation(case(after_the_first_step(21, 500), loaders=[])) is None


def test_the_longer_run_may_tell() -> None:
    looked = after_the_first_step(301, 100)
    finding = evaluation(
        case(after_the_first_step(21, 100), Inspection(), looked=looked, loaders=[])
    )
    assert finding is not None
    # 2 s for every hundred steps of 20 ms.
    assert finding.share == pytest.approx(0.5, abs=0.01)


def test_how_long_one_takes_is_not_what_it_took_while_it_was_looked_into() -> None:
    timed, looked = evaluated(30, 120), Log()
    for ms in (600, 2400, 600):
        for _ in range(10):
            looked.forward(5, 8).backward(8).optimizer(7)
        looked.no_grad(ms)
    looked.forward(5, 8).backward(8).optimizer(7)
    finding = evaluation(case(timed, Inspection(), looked=looked, loaders=[]))
    assert finding is not None and finding.share == pytest.approx(120 / (120 + 200), abs=0.01)
    unseen = evaluation(case(evaluated(100, 0), Inspection(), looked=looked, loaders=[]))
    assert unseen is not None and unseen.share == pytest.approx(600 / (600 + 200), abs=0.01)


def test_none_at_all() -> None:
    assert evaluation(case()) is None
