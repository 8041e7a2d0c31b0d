"""Each rule by itself, on a short past."""

from __future__ import annotations

from hotloop.plan import LeverSetting
from hotloop.search.second_looks import Look, other_settings, reopened, together
from tests.simulated import plan_of


def look(lever: str, gain: float | None, kept: bool = False) -> Look:
    return Look((LeverSetting(lever, {}),), gain, kept)


def mode(name: str) -> LeverSetting:
    return LeverSetting("compile", {"mode": name})


def test_a_refused_one_is_reopened_by_a_partner_that_joined_later() -> None:
    past = [look("bf16", 0.7), look("tf32", 0.9), look("compile", 1.4, kept=True)]
    assert [idea.added for idea in reopened(plan_of("compile"), past)] == [past[0].added]


def test_a_partner_that_was_there_before_reopens_nothing() -> None:
    past = [look("compile", 1.4, kept=True), look("bf16", 0.7)]
    assert list(reopened(plan_of("compile"), past)) == []


def test_what_failed_is_not_reopened() -> None:
    past = [look("bf16", None), look("compile", 1.4, kept=True)]
    assert list(reopened(plan_of("compile"), past)) == []


def test_a_faster_step_reopens_the_loader_and_a_faster_loader_the_step() -> None:
    for first, then in (("loader_workers", "tf32"), ("tf32", "loader_workers")):
        past = [look(first, 1.0), look(then, 1.4, kept=True)]
        assert [idea.added for idea in reopened(plan_of(then), past)] == [past[0].added]


def test_losers_of_the_pack_are_tried_together_where_the_model_can_be_compiled() -> None:
    past = [look("bf16", 0.7), look("channels_last", 0.9), look("tf32", 0.8)]
    assert list(together(plan_of(), past)) == []
    (idea,) = together(plan_of(), [*past, look("compile", 0.9)])
    assert [chosen.lever for chosen in idea.added] == ["bf16", "channels_last", "compile"]


def test_those_that_showed_nothing_are_tried_together() -> None:
    past = [look("loader_workers", 1.0), look("tf32", 1.01), look("fused_optimizer", 0.8)]
    (idea,) = together(plan_of(), past)
    assert [chosen.lever for chosen in idea.added] == ["loader_workers", "tf32"]
    assert list(together(plan_of(), past[1:])) == []


def test_a_refused_one_comes_back_in_its_best_setting() -> None:
    past = [
        Look((mode("default"),), 0.8, False),
        Look((mode("reduce-overhead"),), 0.95, False),
        look("bf16", 1.4, kept=True),
    ]
    (idea,) = reopened(plan_of("bf16"), past)
    assert idea.added == (mode("reduce-overhead"),)


def test_another_setting_of_an_accepted_one_waits_for_partners() -> None:
    past = [Look((mode("reduce-overhead"),), 0.9, False), look("compile", 1.3, kept=True)]
    assert list(other_settings(plan_of("compile"), past)) == []
    past.append(look("bf16", 1.2, kept=True))
    (idea,) = other_settings(plan_of("bf16", "compile"), past)
    assert idea.added == (mode("reduce-overhead"),)
