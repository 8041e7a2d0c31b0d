"""Which plan makes a job fit: on benches that compute what real ones would run."""

from __future__ import annotations

from dataclasses import dataclass, field

from hotloop.plan import LeverSetting, Plan
from hotloop.search.rescue import Rung, rescue
from hotloop.search.score import Score

LADDER: list[Rung] = [
    (LeverSetting("allocator", {}),),
    (LeverSetting("chunked_loss", {}),),
    (LeverSetting("checkpoint_blocks", {"every": 2}),),
    (LeverSetting("checkpoint_blocks", {"every": 1}),),
    (LeverSetting("bf16", {}),),
    (LeverSetting("compile", {}), LeverSetting("fused_attention", {})),
]
ENDED = "The GPU's memory was exhausted."


@dataclass
class Tight:
    """A bench for a job that needs so much, of which plans save some. There is room for 10."""

    needs: float
    saves: dict[str, float]
    idle: frozenset[str] = frozenset()
    crashes: frozenset[str] = frozenset()
    run: list[list[str]] = field(default_factory=list)
    spent: float = 0.0

    def measure(self, plan: Plan, purpose: str, give_up_above: float | None = None) -> Score:
        assert purpose == "rescue"
        words = [word(one) for one in plan.levers]
        self.run.append(words)
        names = {one.lever for one in plan.levers}
        if names & self.crashes:
            return Score(None, "It crashed.")
        if self.needs - sum(self.saves.get(one, 0.0) for one in words) > 10:
            return Score(None, ENDED, out_of_memory=True)
        if idle := tuple(sorted(names & self.idle)):
            return Score(None, f"{idle[0]} did not take effect.", applied=False, idle=idle)
        return Score(1.0)


def word(chosen: LeverSetting) -> str:
    return f"{chosen.lever}{''.join(f':{value}' for value in chosen.setting.values())}"


def found(bench: Tight) -> list[str] | None:
    plan = rescue(ENDED, LADDER, bench).plan
    return None if plan is None else [word(one) for one in plan.levers]


def test_the_first_that_runs_by_itself_is_taken() -> None:
    bench = Tight(12, {"chunked_loss": 3, "checkpoint_blocks:2": 5})
    assert found(bench) == ["chunked_loss"]
    assert bench.run == [["allocator"], ["chunked_loss"]]


def test_of_two_settings_the_less_costly_if_it_does() -> None:
    saves = {"checkpoint_blocks:2": 3.0, "checkpoint_blocks:1": 6.0}
    assert found(Tight(12, saves)) == ["checkpoint_blocks:2"]
    assert found(Tight(15, saves)) == ["checkpoint_blocks:1"]


def test_what_does_not_do_alone_may_do_together_and_what_is_not_needed_is_left_out() -> None:
    saves = {"chunked_loss": 3.0, "checkpoint_blocks:1": 6.0, "checkpoint_blocks:2": 3.0}
    bench = Tight(18, saves)
    assert found(bench) == ["chunked_loss", "checkpoint_blocks:1"]
    tried = rescue(ENDED, LADDER, Tight(18, saves)).tried
    assert [len(one.plan.levers) for one in tried[:6]] == [1, 1, 1, 1, 1, 2]  # the last brings one
    assert ["allocator", "chunked_loss", "checkpoint_blocks:1"] in bench.run
    alone = [one.ran for one in tried if [word(x) for x in one.plan.levers] == bench.run[-2]]
    assert bench.run[-2] == ["allocator", "checkpoint_blocks:1"]  # without the loss in chunks
    assert alone == [False]


def test_what_crashes_is_not_tried_with_others() -> None:
    bench = Tight(18, {"chunked_loss": 9.0}, crashes=frozenset({"checkpoint_blocks"}))
    assert found(bench) == ["chunked_loss"]
    bench = Tight(
        22, {"chunked_loss": 6, "bf16": 6}, crashes=frozenset({"checkpoint_blocks", "compile"})
    )
    assert found(bench) == ["bf16", "chunked_loss"]
    assert not any(len(run) > 1 and "checkpoint_blocks:1" in run for run in bench.run)


def test_what_takes_no_effect_in_a_plan_that_runs_is_left_out() -> None:
    bench = Tight(18, {"chunked_loss": 4, "bf16": 5}, idle=frozenset({"allocator"}))
    assert found(bench) == ["bf16", "chunked_loss"]


def test_an_optimisation_that_needs_another_comes_with_it() -> None:
    bench = Tight(14, {"fused_attention": 3.0, "compile": 2.0})
    assert found(bench) == ["compile", "fused_attention"]
    assert found(Tight(12, {"fused_attention": 3.0, "compile": 3.0})) == ["compile"]


def test_where_nothing_does_all_that_was_tried_is_told() -> None:
    bench = Tight(100, {"chunked_loss": 3.0})
    ended = rescue(ENDED, LADDER, bench)
    assert ended.plan is None
    assert ended.ended == ENDED
    assert len(ended.tried) == len(bench.run) == 6 + 5
    assert {one.reason for one in ended.tried} == {ENDED}


def test_no_plan_is_run_twice() -> None:
    bench = Tight(18, {"chunked_loss": 4, "bf16": 5})
    tried = rescue(ENDED, LADDER, bench).tried
    plans = [repr(one.plan.levers) for one in tried]
    assert len(plans) == len(set(plans)) == len(bench.run)
