from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotloop.equivalence.structure import (
    batch_differences,
    exact_streams,
    loader_differences,
    regrouped,
    setting_differences,
    skipped,
    step_differences,
)
from hotloop.evidence import Given, SettingSeen, StepSeen, Structure
from tests import builders

STEP = StepSeen(optimizer=0, taken=True, moved=True, passes=1, clips=1)
SKIPPED = replace(STEP, taken=False, moved=False)


def steps(*changes: dict[str, Any]) -> Structure:
    return Structure(steps=[replace(STEP, **change) for change in changes])


THREE = steps({}, {}, {})


def settings(*seen: tuple[int, int, str, str]) -> Structure:
    return Structure(settings=[SettingSeen(step, 0, group, n, v) for step, group, n, v in seen])


def given(*batches: str, stream: str = "loader 0", samples: int = 8) -> Structure:
    """One batch a step, named by its data."""
    seen = [Given(stream, step, samples, data) for step, data in enumerate(batches)]
    return Structure(steps=[STEP] * len(batches), given=seen)


def test_the_same_steps_have_no_difference() -> None:
    assert list(step_differences(THREE, THREE)) == []


def test_missing_steps_are_counted() -> None:
    (said,) = step_differences(THREE, steps({}, {}))
    assert said == "it made 2 steps in the time of 3: steps are missing"


def test_steps_too_many_are_counted() -> None:
    assert list(step_differences(steps({}), THREE)) == ["it made 3 steps instead of 1"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"optimizer": 1}, "step 2: another optimizer stepped"),
        ({"passes": 2}, "step 2: 2 backward passes instead of 1"),
        ({"clips": 0}, "step 2: gradients were clipped 0 times instead of 1"),
        ({"moved": False}, "step 2: the optimizer stepped but changed no weights"),
    ],
)
def test_the_first_step_that_differs_is_named(change: dict[str, Any], said: str) -> None:
    assert list(step_differences(THREE, steps({}, change, change))) == [said]


def test_passes_may_differ_where_samples_are_regrouped() -> None:
    split = steps({"passes": 4}, {"passes": 4}, {"passes": 1})
    assert list(step_differences(THREE, split, regroups=True)) == []
    assert list(step_differences(split, THREE, regroups=True)) == []
    (said,) = step_differences(THREE, steps({"passes": 0}, {}, {}), regroups=True)
    assert said == "step 1: 0 backward passes instead of 1"


def test_where_samples_are_regrouped_a_model_is_compared_by_the_step() -> None:
    def made(data: str, *parts: str) -> Structure:
        seen = [Given("loader 0", 0, 8, "batch"), *(Given("model 0", 0, 2, p) for p in parts)]
        return Structure([STEP], [], seen, [Given("model 0", 0, 8, data)])

    whole, split = regrouped(made("all", "all")), regrouped(made("all", "a", "b"))
    other = regrouped(made("other", "a", "b"))
    streams = exact_streams(whole, split)
    assert streams == ["loader 0", "model 0"]
    assert list(batch_differences(whole, split, streams)) == []
    assert list(batch_differences(whole, other, streams)) == ["batch 1 of model 0 holds other data"]


def test_a_scaler_may_skip_a_step_on_either_side() -> None:
    held_back = Structure(steps=[SKIPPED, STEP, STEP])
    assert list(step_differences(THREE, held_back)) == []
    assert list(step_differences(held_back, THREE)) == []
    assert (skipped(held_back), skipped(THREE)) == (1, 0)


def test_weights_that_the_job_itself_leaves_alone_may_stay() -> None:
    frozen = steps({"moved": False})
    assert list(step_differences(frozen, frozen)) == []
    assert list(step_differences(frozen, steps({}))) == []


def test_equal_settings_have_no_difference() -> None:
    some = settings((0, 0, "lr", "0.1"), (5, 0, "lr", "0.05"))
    assert list(setting_differences(some, some)) == []


def test_a_setting_that_differs_is_named_with_both_values() -> None:
    then, now = settings((0, 0, "lr", "0.1")), settings((0, 0, "lr", "0.09"))
    assert list(setting_differences(then, now)) == ["step 1: lr is 0.09 instead of 0.1"]


def test_all_settings_of_the_first_step_that_differs_are_named_and_none_after_it() -> None:
    then = settings((0, 0, "decay", "1"), (0, 0, "lr", "2"), (0, 1, "lr", "2"), (4, 0, "lr", "1"))
    now = settings((0, 0, "decay", "0"), (0, 0, "lr", "3"), (0, 1, "lr", "3"), (4, 0, "lr", "2"))
    assert list(setting_differences(then, now)) == [
        "step 1: decay is 0 instead of 1",
        "step 1: lr is 3 instead of 2",
    ]


def test_a_schedule_that_was_lost_or_comes_late_is_seen() -> None:
    scheduled = settings((0, 1, "lr", "0.1"), (5, 1, "lr", "0.05"))
    (lost,) = setting_differences(scheduled, settings((0, 1, "lr", "0.1")))
    assert lost == "step 6: lr of group 2 is as before instead of 0.05"
    (added,) = setting_differences(settings((0, 1, "lr", "0.1")), scheduled)
    assert added == "step 6: lr of group 2 is 0.05 instead of as before"


def test_equal_batches_have_no_difference() -> None:
    assert list(batch_differences(given(*"abc"), given(*"abc"), ["loader 0"])) == []


@pytest.mark.parametrize(
    ("now", "said"),
    [
        (given(*"axc"), "batch 2 of loader 0 holds other data"),
        (given(*"acb"), "batch 2 of loader 0 comes in another order"),
        (given(*"xyz", samples=7), "batch 1 of loader 0 has 7 samples instead of 8"),
        (given(*"ab"), "batch 3 of loader 0 is missing"),
        (given(*"abcd"), "batch 4 of loader 0 is one too many"),
        (Structure(steps=[STEP] * 3), "batch 1 of loader 0 is missing"),
    ],
)
def test_the_first_batch_that_differs_is_named(now: Structure, said: str) -> None:
    assert list(batch_differences(given(*"abc"), now, ["loader 0"])) == [said]


def test_what_is_fetched_when_a_trial_ends_belongs_to_no_step() -> None:
    then = given(*"abc")
    more = replace(then, given=[*then.given, Given("loader 0", 3, 8, "d")])
    assert list(batch_differences(then, more, ["loader 0"])) == []


def test_only_streams_that_do_not_depend_on_the_weights_are_compared() -> None:
    data, made = given(*"ab"), given(*"pq", stream="model 1")
    reference = replace(data, given=[*data.given, *made.given])
    other = given(*"pr", stream="model 1")
    yardstick = replace(data, given=[*data.given, *other.given])
    assert exact_streams(reference, yardstick) == ["loader 0"]
    assert exact_streams(reference, reference) == ["loader 0", "model 1"]
    assert exact_streams(Structure(), Structure()) == []
    assert list(batch_differences(reference, yardstick, ["loader 0"])) == []


@pytest.mark.parametrize(
    "change",
    [
        {"samples": 799},
        {"batches": 99},
        {"batch_size": 4},
        {"drop_last": True},
        {"shuffled": False},
    ],
)
def test_a_loader_that_would_deliver_something_else_is_named(change: dict[str, Any]) -> None:
    (said,) = loader_differences([builders.loader()], [builders.loader(**change)])
    ((name, value),) = change.items()
    assert said == f"loader 0: {name} is {value} instead of {getattr(builders.loader(), name)}"


def test_how_a_loader_loads_is_for_a_plan_to_choose() -> None:
    other = builders.loader(workers=4, prefetch=8, persistent=True, pinned=True)
    assert list(loader_differences([builders.loader()], [other])) == []
