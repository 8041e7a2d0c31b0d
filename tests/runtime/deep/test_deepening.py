from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from hotloop.runtime.deep.growth import GrowthTurn
from tests.runtime.deep.conftest import Train, problems

Step = Callable[[], None]


def test_profilers_take_turns(train: Train, step: Step) -> None:
    job = train("python")
    report = job.until_seen(step)
    assert problems(report) == []
    assert report.functions is not None and report.functions.steps == 4
    assert report.growth is not None and report.growth.steps == 2
    assert report.tensor_growth is not None and report.tensor_growth.steps == 2
    assert report.lines
    # To warm up, functions, two kinds of growth, lines; and one step after which all is known.
    assert job.made >= (1 + 6) + 4 + (2 + 2) + (2 + 2) + 4 + 1
    assert not tracemalloc.is_tracing()


def test_whole_steps_and_no_more(train: Train, step: Step) -> None:
    job = train("torch")
    report = job.until_seen(step)
    assert report.operators is not None and report.operators.steps == 4
    assert job.made == (1 + 6) + (1 + 4) + 1


def test_a_script_that_ends_early_leaves_what_was_seen(train: Train, step: Step) -> None:
    report = train("python").until_seen(step, most=10)
    assert report.functions is not None and report.functions.steps == 3
    assert (report.growth, report.tensor_growth, report.lines) == (None, None, [])
    assert problems(report) == [
        "No memory growth by line: the training ended after 10 steps, too soon.",
        "No growth of tensors by line: the training ended after 10 steps, too soon.",
        "No sampled lines: the training ended after 10 steps, too soon.",
    ]


@pytest.mark.parametrize("kind", ["python", "torch", "kernel"])
def test_a_script_that_ends_while_it_warms_up(kind: str, train: Train, step: Step) -> None:
    """What only a GPU has is not missed where there is none."""
    report = train(kind).until_seen(step, most=3)
    assert report.files == []
    assert len(report.problems) == {"python": 4, "torch": 1, "kernel": 1}[kind]


@pytest.mark.parametrize("kind", ["torch", "kernel"])
def test_a_script_that_ends_when_profiling_has_just_begun(
    kind: str, train: Train, step: Step
) -> None:
    report = train(kind).until_seen(step, most=8)
    assert (report.operators, report.files) == (None, [])
    (problem,) = report.problems
    assert "too soon" in problem


def test_one_that_fails_takes_away_its_own_table_alone(
    train: Train, step: Step, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(turn: GrowthTurn) -> None:
        raise OSError("no\nroom")

    monkeypatch.setattr(GrowthTurn, "begin", fail)
    report = train("python").until_seen(step)
    assert problems(report) == ["No memory growth by line: OSError: no room"]
    assert report.growth is None
    assert report.functions is not None and report.tensor_growth is not None and report.lines


def test_a_slow_job_is_not_profiled_for_ever(train: Train, step: Step) -> None:
    job = train("torch", steps=50, most_seconds=0.0)
    job.until_seen(step)
    assert job.made < 12
