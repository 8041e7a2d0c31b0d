"""How optimisations get along: which change each other's worth, and which exclude each other.

Measured alone, an optimisation can lose and still belong in the best plan. The rules here say
when it is worth measuring again, and nothing else: whether it then stays, only a trial decides.
"""

from __future__ import annotations

from collections.abc import Iterable

from hotloop.levers.registry import LEVERS
from hotloop.plan import LeverSetting, Plan

PARTNERS = frozenset(
    frozenset(pair)
    for pair in (
        ("bf16", "compile"),
        ("bf16", "channels_last"),
        ("channels_last", "compile"),
        ("fused_attention", "compile"),
        ("fused_attention", "bf16"),
        ("fused_upsampling", "channels_last"),
        ("folded_pixels", "bf16"),
        ("folded_pixels", "tf32"),
        ("folded_pixels", "channels_last"),
        ("fp8", "bf16"),
        ("shape_padding", "bf16"),
        ("shape_padding", "tf32"),
        ("compile_loss", "bf16"),
        ("compile_loss", "compile"),
        ("fused_optimizer", "compile"),
        ("fused_optimizer", "bf16"),
        ("update_graph", "compile"),
        ("update_graph", "bf16"),
        ("update_graph", "model_graph"),
        ("model_graph", "bf16"),
        ("model_graph", "channels_last"),
        ("fused_optimizer", "model_graph"),
        ("device_prefetch", "model_graph"),
        ("chunked_loss", "bf16"),
        ("device_prefetch", "compile"),
    )
)
"""Pairs of which one may win only once the other is there.

TF32 and bf16 are not among them. They interact the other way round: where bf16 computes the
products, TF32 has none left.
"""

LOADING = frozenset({"loader_workers", "cache_dataset", "stage_data"})
"""Which make batches come sooner."""

PACK = ("bf16", "fp16", "channels_last", "compile")
"""Which may all lose alone and win together."""


STAND_INS = {"compile_blocks": "compile", "fp16": "bf16"}
"""Which are for jobs that cannot have the other."""

MAKES_NEEDLESS = {
    "bf16": ("tf32",),
    "fp16": ("tf32",),
    "device_prefetch": ("pin_memory",),
    "update_graph": ("fused_optimizer",),
}
"""Which take over the work of others. Those may come back, by a trial that says so."""


def are_partners(one: str, other: str) -> bool:
    """Whether accepting one is a reason to look at the other again.

    bf16 adds a cast to every layer and wins nothing while the CPU cannot launch kernels fast
    enough; compiling fuses the casts away. Channels last costs transpositions that compiling
    removes and pays in convolutions of bf16. The fastest attention takes 16-bit numbers alone, and
    a model without its score matrices may be best compiled in another mode. Upsampling puts the
    channels of volumes first, if it is not written otherwise. Pixels are folded for tensor cores,
    with the channels last best of all. Products are padded for
    tensor cores, which compute in 16 bits or in TF32 alone. Products in 8 bits leave the rest of a
    model in 16, or in 32 where they win less. A compiled loss spares
    the cast that bf16 brings, and is a larger part of a step whose model is compiled; one that is
    computed in chunks spares float32 copies of 16-bit logits. Once a compiled model leaves the CPU
    idle, it is the optimizer's many small kernels that are waited for, fused or replayed. Passes
    that are replayed leave it idle as well, and their casts cost no queueing. And a
    loader hides behind a slow step as a slow step hides behind a loader: whatever speeds up one
    side shows what the other is worth. A batch is copied ahead as far as the CPU is ahead, which
    compiling leaves time for. Two that speed up loading may take each other's work away; that, too,
    is seen by looking again. What stands in for another has its partners.
    """
    pair = frozenset(STAND_INS.get(lever, lever) for lever in (one, other))
    return bool(LOADING & pair) or pair in PARTNERS


def stood_for(lever: str) -> str | None:
    """What makes a trial of this one needless once it was measured itself, kept or not.

    A model's blocks are compiled where the whole cannot be, or takes longer than a trial may. Where
    it can, its blocks were compiled with it; whether that pays is then known. float16 is for GPUs
    without bfloat16, which is as fast, needs no scaling and skips no step.
    """
    return STAND_INS.get(lever)


def is_needless(plan: Plan, lever: str) -> bool:
    """Whether the plan has one that takes over its work."""
    return any(lever in MAKES_NEEDLESS.get(name, ()) for name in names(plan))


def compiles(lever: str) -> bool:
    """Whether its first trial takes many times what one of the job as it is does.

    What works inside the graphs that `compile` captures makes others of them.
    """
    found = LEVERS[lever]
    return "compile" in found.requires or (found.compiles and not found.only_captures)


def superseded(idle: Iterable[str], added: Iterable[LeverSetting]) -> tuple[str, ...]:
    """What new ones have left nothing to do for. The plan is then worth measuring without it.

    A model that is compiled with its loss inside leaves no loss to compute in chunks; in a graph
    whose blocks are computed again, attention inside them is not seen. If a new one did nothing
    itself, nothing was superseded.
    """
    new = {chosen.lever for chosen in added}
    found = tuple(idle)
    return () if new & set(found) else found


def rivals(plan: Plan, added: Iterable[LeverSetting]) -> tuple[str, ...]:
    """What new ones may have taken the work of. The plan is then worth measuring without it.

    Items that are kept need no workers to make them, who then only pass them on, and take cores
    from the training; but where items are kept and batches are still waited for, both belong.
    """
    new = {chosen.lever for chosen in added}
    return tuple(name for name in names(plan) if name in LOADING - new and new & LOADING)


def names(plan: Plan) -> tuple[str, ...]:
    return tuple(chosen.lever for chosen in plan.levers)


def combined(plan: Plan, added: Iterable[LeverSetting]) -> Plan:
    """The plan with these in it, in the order in which they have to be applied.

    An optimisation occurs once. What conflicts with a new one, or has no work left beside it, makes
    room for it, and takes along what requires it. Unless both are new: then it is that pair which
    is to be tried.
    """
    chosen = {setting.lever: setting for setting in plan.levers}
    new = [setting.lever for setting in added]
    for setting in added:
        needless = [name for name in MAKES_NEEDLESS.get(setting.lever, ()) if name not in new]
        for other in [name for name in chosen if _exclude(name, setting.lever)] + needless:
            chosen = _dropped(chosen, other)
        chosen[setting.lever] = setting
    return _ordered(chosen)


def without(plan: Plan, lever: str) -> Plan:
    """Less this one, and less what cannot be without it."""
    return _ordered(_dropped({setting.lever: setting for setting in plan.levers}, lever))


def apart(plan: Plan, lever: str) -> tuple[LeverSetting, ...]:
    """Of a plan: this one, and what it cannot be without."""
    required = [one for name in LEVERS[lever].requires for one in apart(plan, name)]
    return (*required, *(one for one in plan.levers if one.lever == lever))


def missing(plan: Plan, lever: str) -> tuple[str, ...]:
    """What it requires and the plan does not have."""
    return tuple(name for name in LEVERS[lever].requires if name not in names(plan))


def _exclude(one: str, other: str) -> bool:
    return other in LEVERS[one].conflicts or one in LEVERS[other].conflicts


def _dropped(chosen: dict[str, LeverSetting], lever: str) -> dict[str, LeverSetting]:
    left = {name: setting for name, setting in chosen.items() if name != lever}
    for name in [name for name in left if lever in LEVERS[name].requires]:
        left = _dropped(left, name)
    return left


def _ordered(chosen: dict[str, LeverSetting]) -> Plan:
    return Plan(tuple(chosen[name] for name in LEVERS if name in chosen))
