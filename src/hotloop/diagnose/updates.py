"""What an optimizer's update takes when it is fused, against what it takes as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.diagnose.base import Case
from hotloop.measurement import OptimizerSeen


@dataclass(frozen=True)
class Update:
    """Of one optimizer in torch, in float32."""

    operators: int
    """For one tensor, when it is not fused."""
    unfused: int
    """Bytes read and written for a parameter, one operator after the other."""
    fused: int
    """The same at once: weight, gradient and state."""
    a_tensor: float
    """Tiny operators that it then still takes as long as, for each tensor on a CPU: measured with a
    thousand tensors of 32 elements, torch 2.13."""


UPDATES = {
    "Adam": Update(9, 80, 28, 2.3),
    "AdamW": Update(10, 80, 28, 2.1),
    "Adagrad": Update(5, 44, 20, 2.3),
    "SGD": Update(2, 26, 20, 1.0),
}


def operators_a_step(case: Case) -> float:
    """Those of the optimizer. 0.0: not counted."""
    operators = case.inspection.operators if case.inspection else None
    if operators is None or not operators.steps:
        return 0.0
    return sum(o.operators for o in operators.lines if o.phase == "optimizer") / operators.steps


def saved_by_fusing(case: Case, alike: Sequence[OptimizerSeen], others: bool) -> float | None:
    """The part of their updates' time. None: not known.

    By how both compare on this machine, and not by how long either should take: the job may have
    to share the machine. `others`: whether operators of other optimizers were counted with theirs.
    """
    update, roof = UPDATES.get(alike[0].name), case.roof
    operators, parameters = operators_a_step(case), sum(one.parameters for one in alike)
    if others and update is not None:
        operators = update.operators * float(sum(one.tensors for one in alike))
    bandwidth = (roof.memory_bandwidth if case.on_gpu else roof.cpu_memory_bandwidth) if roof else 0
    if update is None or roof is None or not bandwidth or not roof.launch_seconds or not operators:
        return None
    now = operators * roof.launch_seconds + update.unfused * parameters / bandwidth
    # On a GPU one kernel works off many tensors.
    tensors = 0.0 if case.on_gpu else operators / update.operators
    each = update.a_tensor * roof.launch_seconds
    then = tensors * each + update.fused * parameters / bandwidth
    return max(1 - then / now, 0.0)
