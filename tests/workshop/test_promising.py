from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotloop.diagnose.base import Effort, Finding
from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.diagnose.numbers import Numbers
from hotloop.figures import PhaseShare, figures
from hotloop.levers.base import Effect
from hotloop.levers.registry import LEVERS
from hotloop.measurement import Inventory, Measurement, Software
from hotloop.search.candidate import Candidate
from hotloop.study import Options
from hotloop.suggest import LEAST_SHARE
from hotloop.workshop.promising import out_of_bounds, predictions, promising
from tests import builders

EVERY = {
    "data": 0.3,
    "copy": 0.1,
    "forward": 0.2,
    "backward": 0.3,
    "optimizer": 0.1,
}
"""Something for each optimisation to win."""
SLOW_COPIES = {"copy": 0.95, "forward": 0.02, "backward": 0.03}
"""As it looks to a CPU that waits for its GPU."""


def measured(device: str = builders.GPU) -> Measurement:
    inventory = Inventory(
        models=[builders.model(convolutions=3)],
        optimizers=[builders.optimizer()],
        loaders=[builders.loader(workers=0)],
        optimizer_built=True,
    )
    software = Software("3.11.9", "2.13.0", device)
    return builders.measurement(inventory=inventory, software=software)


def looked_at(
    shares: dict[str, float] = EVERY, device: str = builders.GPU, **options: Any
) -> tuple[list[Candidate], dict[str, str]]:
    found = figures(measured(device))
    assert found is not None
    phases = tuple(PhaseShare(phase, share, share) for phase, share in shares.items())
    seen = replace(found, phases=phases)
    candidates, refused = promising(measured(device), seen, 8, Options(**options))
    assert not any(one.tried for one in refused)
    return list(candidates), {one.lever: one.reason for one in refused}


def names(candidates: list[Candidate]) -> list[str]:
    return [one.lever for one in candidates]


def test_every_optimisation_is_either_a_candidate_or_refused_with_a_reason() -> None:
    for shares in (EVERY, {"rest": 1.0}):
        candidates, refused = looked_at(shares)
        assert sorted([*names(candidates), *refused]) == sorted(LEVERS)
        assert all(refused.values())


def test_the_most_promising_come_first_with_their_settings() -> None:
    candidates, _ = looked_at()
    shares = [one.share for one in candidates]
    assert shares == sorted(shares, reverse=True)
    assert names(candidates)[0] == "loader_workers"
    assert all(one.settings for one in candidates)


def test_what_could_win_next_to_nothing_is_not_tried() -> None:
    candidates, refused = looked_at({"forward": 0.03, "rest": 0.97})
    assert candidates == []
    assert refused["bf16"] == "it could win 1.5% of a step at the very most"


def test_what_an_optimisation_says_of_itself_is_handed_on() -> None:
    _, refused = looked_at(device="cpu")
    assert refused["pin_memory"] == "there is nothing to copy on a CPU"


class TestWhereMemoryIsTheObjective:
    def test_what_can_only_take_memory_is_refused_with_that_reason(self) -> None:
        """A job that waits for its data three quarters of a step was offered a cache for it."""
        waits = {"data": 0.75, "rest": 0.25}
        asked = {"objective": "memory", "effect": "changes_training"}
        for device in ("cpu", builders.GPU):
            candidates, refused = looked_at(waits, device, **asked)
            costly = {name for name, lever in LEVERS.items() if lever.not_for_memory}
            assert not costly & {*names(candidates)}
            assert all(refused[name] == LEVERS[name].not_for_memory for name in costly)
            assert refused["cache_dataset"] == "the items that it keeps take memory"

    def test_nor_is_it_tried_by_name(self) -> None:
        candidates, refused = looked_at(objective="memory", only=("loader_workers",))
        assert candidates == []
        assert "take memory" in refused["loader_workers"]
        assert refused["bf16"] == "not among --only"

    def test_what_may_take_less_by_the_way_is_tried_however_little_time_it_wins(self) -> None:
        by_the_way = {"bf16", "compile", "channels_last", "fused_optimizer"}
        shares = {"rest": 0.99, "forward": 0.009, "optimizer": 0.001}
        candidates, _ = looked_at(shares, objective="memory")
        assert by_the_way <= {*names(candidates)}
        told = [one for one in candidates if one.lever in by_the_way]
        assert {(one.share, one.predicted, one.worth_from) for one in told} == {(0.0, None, 1.0)}
        for_speed, _ = looked_at(shares)
        assert not by_the_way & {*names(for_speed)}

    def test_findings_about_time_speak_for_none(self) -> None:
        found = figures(measured())
        assert found is not None
        levers = ("bf16", "cache_dataset")
        slow = Finding("waiting", "It waits", 0.4, "More.", Effort.SETTING, levers=levers)
        known = Diagnosis("It is slow.", (slow,), (), Numbers())
        options = Options(objective="memory")
        candidates, refused = promising(measured(), found, 8, options, known)
        assert {one.predicted for one in candidates} == {None}
        assert "cache_dataset" in {one.lever for one in refused}


def test_the_user_names_what_to_try() -> None:
    candidates, refused = looked_at(only=("bf16", "tf32"))
    assert {*names(candidates)} == {"bf16", "tf32"}
    assert refused["compile"] == "not among --only"


def test_what_a_chosen_one_needs_comes_along() -> None:
    options = Options(only=("fused_attention",))
    assert not out_of_bounds("fused_attention", Effect.SAME_MATH, options)
    assert not out_of_bounds("compile", Effect.SAME_MATH, options)
    assert out_of_bounds("bf16", Effect.SAME_MATH, options) == "not among --only"


def test_float16_is_tried_beside_bfloat16_only_by_name() -> None:
    candidates, refused = looked_at()
    assert "bf16" in names(candidates) and "fp16" not in names(candidates)
    assert "--only fp16" in refused["fp16"]
    candidates, _ = looked_at(only=("fp16",))
    assert names(candidates) == ["fp16"]


def test_the_user_names_what_not_to_try() -> None:
    candidates, refused = looked_at(skip=("bf16",))
    assert "bf16" not in names(candidates)
    assert refused["bf16"] == "left out by --skip"
    assert "tf32" in names(candidates)


@pytest.mark.parametrize(
    ("effect", "has_lower"),
    [("same_math", False), ("lower_precision", True), ("changes_training", True)],
)
def test_the_user_says_how_far_to_go(effect: str, has_lower: bool) -> None:
    candidates, refused = looked_at(effect=effect)
    assert ("bf16" in names(candidates)) is has_lower
    assert ("tf32" in names(candidates)) is has_lower
    assert "compile" in names(candidates)
    if not has_lower:
        assert refused["bf16"] == "lower_precision is more than --effect allows"


class TestDiagnosed:
    """Of a job that was looked into."""

    CROWDED = builders.measurement(
        inventory=Inventory(
            models=[builders.model()], optimizers=[builders.optimizer()], threads=16
        )
    )

    def offered(self, *findings: Finding) -> tuple[dict[str, Candidate], dict[str, str]]:
        found = figures(self.CROWDED)
        assert found is not None
        diagnosis = Diagnosis("It is slow.", findings, (), Numbers())
        candidates, refused = promising(self.CROWDED, found, 2, Options(), diagnosis)
        return {one.lever: one for one in candidates}, {one.lever: one.reason for one in refused}

    def test_what_a_rule_looks_for_and_did_not_find_is_not_tried(self) -> None:
        candidates, refused = self.offered()
        assert "threads" not in candidates
        assert refused["threads"] == "nothing that was found speaks for it"

    def test_what_was_found_is_tried_first_with_what_it_would_win(self) -> None:
        crowded = Finding(
            "too_many_threads", "Too many", 0.4, "Fewer.", Effort.SETTING, levers=("threads",)
        )
        remark = replace(crowded, share=0.9, is_limit=False)
        candidates, _ = self.offered(crowded, replace(crowded, share=0.3), remark)
        assert next(iter(candidates)) == "threads"
        assert candidates["threads"].predicted == 0.4

    def test_each_is_ranked_by_what_it_would_win_itself(self) -> None:
        levers = ("loader_workers", "cache_dataset")
        waits = Finding("waiting_for_data", "It waits", 0.4, "More.", Effort.SETTING, levers=levers)
        found = Diagnosis("", (replace(waits, gains={"cache_dataset": 0.8}),), (), Numbers())
        assert predictions(found) == {"loader_workers": 0.4, "cache_dataset": 0.8}
        found = Diagnosis("", (replace(waits, gains={"loader_workers": 0.01}),), (), Numbers())
        assert predictions(found) == {"cache_dataset": 0.4}

    def test_others_are_still_tried_where_they_could_win_enough(self) -> None:
        candidates, _ = self.offered()
        assert "compile" in candidates
        assert candidates["compile"].predicted is None


def test_dear_settings_are_for_those_who_ask() -> None:
    def dear(**options: Any) -> dict[str, int]:
        return {one.lever: len(one.dear) for one in looked_at(**options)[0] if one.dear}

    assert dear() == {}
    assert dear(thorough=True) == {"compile": 2}


def test_what_is_little_of_a_slow_step_waits_until_the_step_is_fast() -> None:
    candidates, _ = looked_at({"forward": 0.985, "optimizer": 0.015})
    waiting = {"fused_optimizer", "update_graph"}
    assert {one.lever for one in candidates if one.worth_from > 1} == waiting
    assert {one.lever for one in candidates[-2:]} == waiting
    assert candidates[-1].worth_from == pytest.approx(LEAST_SHARE / candidates[-1].share)
    hopeless, _ = looked_at({"forward": 0.9999, "optimizer": 0.0001})
    assert not {*names(hopeless)} & waiting


def test_what_a_finding_asks_for_brings_along_what_it_needs() -> None:
    measurement = measured()
    found = figures(measurement)
    assert found is not None
    phases = tuple(PhaseShare(phase, share, share) for phase, share in SLOW_COPIES.items())
    by_hand = Finding(
        "handwritten_attention", "By hand", 0.1, "Fuse.", Effort.LINES, levers=("fused_attention",)
    )
    diagnosis = Diagnosis("", (by_hand,), (), Numbers())
    seen = replace(found, phases=phases)
    candidates, _ = promising(measurement, seen, 8, Options(), diagnosis)
    assert {one.lever: one.worth_from for one in candidates}["compile"] == 1


def test_what_the_cpu_waits_for_costs_no_more_than_the_gpu_idles() -> None:
    found = figures(measured())
    assert found is not None
    phases = tuple(PhaseShare(phase, share, share) for phase, share in SLOW_COPIES.items())
    spans = (PhaseShare("forward", 0.4, 0.4), PhaseShare("backward", 0.6, 0.6))
    seen = replace(found, phases=phases, gpu_phases=spans)
    diagnosis = Diagnosis("", (), (), Numbers(gpu_busy=0.99))
    candidates, _ = promising(measured(), seen, 8, Options(), diagnosis)
    shares = {one.lever: one.share for one in candidates}
    assert shares["bf16"] == pytest.approx(0.5)
    assert shares.get("pin_memory", 0.0) == pytest.approx(0.01)
    unread = replace(seen, gpu_phases=())  # then there is only the CPU's clock to go by
    candidates, _ = promising(measured(), unread, 8, Options(), diagnosis)
    assert {one.lever: one.share for one in candidates}["pin_memory"] > 0.5


@pytest.mark.parametrize("given", [(), ("compile",)])
def test_what_lacks_what_it_needs_is_not_tried(given: tuple[str, ...]) -> None:
    measurement, seen = measured(), figures(measured())
    assert seen is not None
    odd = replace(measurement.inventory, models=[builders.model(odd_sizes=2)])
    measurement, skip = replace(measurement, inventory=odd), Options(skip=("compile",))
    candidates, refused = promising(measurement, seen, 8, skip, given=given)
    why = {one.lever: one.reason for one in refused}.get("shape_padding", "")
    if given:
        assert "shape_padding" in names(list(candidates))
    else:
        assert why == "it needs compile, which is not tried"
    assert "shape_padding" in names(list(promising(measurement, seen, 8, Options())[0]))
