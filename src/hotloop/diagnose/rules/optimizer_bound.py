"""The optimizer updates tensor after tensor, and takes much of the step."""

from __future__ import annotations

from collections import Counter

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import distinct
from hotloop.diagnose.sightings import seconds_by_line, sightings
from hotloop.diagnose.steady import steady_spans
from hotloop.diagnose.updates import operators_a_step, saved_by_fusing
from hotloop.diagnose.wording import percent, seconds
from hotloop.figures import figures
from hotloop.levers.fusing import KERNELS
from hotloop.measurement import Kind, OptimizerSeen
from hotloop.timeline import Phase

FOREACH = ("Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", *KERNELS)
"""Of torch's: those that can update many tensors at once."""
NOT_BY_TENSOR = ("LBFGS", "SparseAdam")
"""They keep all weights as one vector, or touch few rows: there is nothing to put together."""
MUCH = 0.2
"""Of the most that a line takes. Where phases meet, samples of one fall into the other."""
USUAL = 0.5
"""Of its time, what a fused optimizer saves: assumed where nothing is known that could tell."""


def optimizer_bound(case: Case) -> Finding | None:
    alike, part = _dearest_of_a_name(case)
    share = _share(case) * part
    if not alike or share < LEAST_SHARE:
        return None
    optimizer, others = alike[0], part < 1
    known = saved_by_fusing(case, alike, others)
    saved = share * (USUAL if known is None else known)
    if saved < LEAST_SHARE:
        return None
    at_once = _does_what_it_can(case, optimizer)
    seen = sightings(case, clipping=False)
    lines = seconds_by_line(seen, lambda one: one.phase == Phase.OPTIMIZER)
    return Finding(
        rule="optimizer_bound",
        title=f"{optimizer.name if others else 'The optimizer'} takes {percent(share)} of a step",
        share=0.0 if at_once else saved,
        remedy=_remedy(optimizer, at_once),
        effort=Effort.SETTING if optimizer.name in FOREACH and not at_once else Effort.LINES,
        evidence=(*_evidence(case, optimizer, share, others), *([] if at_once else [_less(known)])),
        is_limit=not at_once,
        places=distinct(line for line, spent in lines if spent >= MUCH * lines[0][1]),
        # The lever leaves an implementation alone that the script has chosen.
        levers=("fused_optimizer",)
        if optimizer.name in KERNELS and optimizer.foreach is None
        else (),
    )


def _dearest_of_a_name(case: Case) -> tuple[list[OptimizerSeen], float]:
    """Those that can be fused and take most together, and their part of what all optimizers take.

    Of sparse embeddings and a dense rest, say, each has one of its own, and only one gains.
    """
    spent: Counter[int] = Counter()
    for span in steady_spans(case, Kind.OPTIMIZER_BEGIN):
        spent[span.key] += span.end_ns - span.begin_ns
    seen = list(enumerate(case.measurement.inventory.optimizers))
    unfused = [(n, one) for n, one in seen if not one.fused and one.name not in NOT_BY_TENSOR]
    names: Counter[str] = Counter()
    for number, one in unfused:
        names[one.name] += spent[number]
    if not names or not spent.total():
        return [], 0.0
    ((name, longest),) = names.most_common(1)
    alike = [(n, one) for n, one in unfused if one.name == name and spent[n]]
    ordered = sorted(alike, key=lambda pair: -spent[pair[0]])
    return [one for _, one in ordered], longest / spent.total()


def _share(case: Case) -> float:
    """What it takes itself: gradients may have been logged before, and no kernel makes that less.

    On a GPU by its own clock: what the CPU takes for it is hidden as long as the GPU is busy.
    """
    found = figures(case.measurement, clipping=False)
    if found is None:
        return 0.0
    clock = found.gpu_phases if case.on_gpu and found.gpu_phases else found.phases
    return sum(one.share for one in clock if one.phase == Phase.OPTIMIZER)


def _does_what_it_can(case: Case, optimizer: OptimizerSeen) -> bool:
    """It updates many tensors at once, as torch does on a GPU without being told; no kernel of it
    does more."""
    together = case.on_gpu if optimizer.foreach is None else optimizer.foreach
    return together and optimizer.name in FOREACH and optimizer.name not in KERNELS


def _remedy(optimizer: OptimizerSeen, at_once: bool) -> str:
    if at_once:
        return (
            f"{optimizer.name} already updates many tensors at once, and has no fused kernel; "
            "one of another optimizer, AdamW say, is another training."
        )
    if optimizer.name in KERNELS:
        return f"Update all tensors at once: {optimizer.name}(…, fused=True)."
    if optimizer.name in FOREACH:
        how = f"{optimizer.name}(…, foreach=True), or a fused optimizer"
    else:
        how = f"by torch's _foreach functions in {optimizer.name}, or with a fused optimizer"
    return f"Update many tensors at once: {how}."


def _evidence(case: Case, optimizer: OptimizerSeen, share: float, others: bool) -> tuple[str, ...]:
    kind = "one tensor after the other" if optimizer.foreach is False else "unfused"
    found = [f"{optimizer.name} takes {seconds(share * case.figures.step.mean)} a step, {kind}"]
    operators = operators_a_step(case)
    if operators and not others:
        found.append(f"it runs {operators:,.0f} operators a step")
    return tuple(found)


def _less(known: float | None) -> str:
    if known is None:
        return f"assumed: a fused one takes {percent(USUAL)} less"
    return f"by its operators and its traffic a fused one takes {percent(known)} less"
