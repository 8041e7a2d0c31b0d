from __future__ import annotations

import pytest

from hotloop.plan import LeverSetting, Plan
from hotloop.report.plan_words import beyond, key, plan_words, setting_words
from tests.report.studies import BF16, BOTH, COMPILE, WORKERS


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (BF16, "bf16"),
        (COMPILE, "compile (reduce-overhead)"),
        (WORKERS, "loader_workers (workers 4, prefetch 2, persistent)"),
        (LeverSetting("loader_workers", {"persistent": False}), "loader_workers"),
    ],
)
def test_a_setting_is_said_shortly(chosen: LeverSetting, words: str) -> None:
    assert setting_words(chosen) == words


def test_a_plan_is_a_sum_and_an_empty_one_is_the_job_as_it_is() -> None:
    assert plan_words(BOTH) == "bf16 + compile (reduce-overhead)"
    assert plan_words(Plan()) == "as it is"


def test_plans_are_the_same_by_what_they_apply() -> None:
    assert key(Plan((COMPILE, BF16), torch="2.13")) == key(BOTH)
    assert key(Plan((LeverSetting("compile", {"mode": "default"}),))) != key(Plan((COMPILE,)))


def test_another_setting_is_something_else() -> None:
    default = LeverSetting("compile", {"mode": "default"})
    assert beyond(BOTH, Plan((BF16, default))) == (COMPILE,)
    assert beyond(Plan((BF16,)), BOTH) == ()
