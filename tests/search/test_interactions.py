from __future__ import annotations

from hotloop.plan import LeverSetting, Plan
from hotloop.search.interactions import apart

BF16, LOSS = LeverSetting("bf16", {}), LeverSetting("compile_loss", {})
COMPILE = LeverSetting("compile", {"mode": "reduce-overhead"})
ATTENTION = LeverSetting("fused_attention", {})
PLAN = Plan((BF16, COMPILE, ATTENTION, LOSS))


def test_what_needs_another_does_not_come_without_it() -> None:
    assert apart(PLAN, "fused_attention") == (COMPILE, ATTENTION)


def test_what_needs_none_comes_alone() -> None:
    assert apart(PLAN, "bf16") == (BF16,)
    assert apart(PLAN, "compile_loss") == (LOSS,)
