"""Optimizers whose update can be captured in a graph, and what that asks of them.

A graph goes on with what lies on the device: it must find the learning rate and the count of steps
there. Fused kernels do. Other optimizers do so while they are told that they are captured, by
`capturable`, if they go over all parameters at once (foreach) and their steps are counted there.

Left out are those whose update is another one then. Adamax, NAdam and RAdam correct it by the count
of steps: on the device in float32, by which RAdam's differ in the third digit; and in updates that
run as they are they would wait for the device, once a parameter. Adagrad computes its learning rate
on the host, and its fused kernel is not in every torch.
"""

from __future__ import annotations

from typing import Any

from hotloop.levers import fusing
from hotloop.levers.saved_optimizer import save_as_plain

FUSED = ("Adam", "AdamW", "SGD")
"""Whose fused kernels read their learning rate from the device."""
UNFUSED = ("ASGD", "Adadelta", "RMSprop", "Rprop")
"""Who have no such kernel, and can be captured without."""
KINDS = (*FUSED, *UNFUSED)
ON_THE_DEVICE = "ASGD"
"""Counts its steps on the device in any case, in a plain job's checkpoints too."""


def obstacle(torch: Any, optimizer: Any) -> str:
    """Why it cannot be captured; empty when it can."""
    kind, groups = type(optimizer), optimizer.param_groups
    if kind.__name__ not in KINDS or kind is not getattr(torch.optim, kind.__name__):
        return "cannot be captured in a graph"
    if any(torch.is_tensor(group["lr"]) for group in groups):
        return "has a tensor for a learning rate"
    parameters = [p for group in groups for p in group["params"]]
    if any(type(p) not in (torch.nn.Parameter, torch.Tensor) for p in parameters):
        return "has parameters of a class of their own"
    if any(p.dtype is torch.float64 for p in parameters):
        return "has parameters in float64, which a learning rate in float32 would not do for"
    if kind.__name__ in FUSED:
        return "" if fusing.is_fused(optimizer) else fusing.obstacle(torch, optimizer)
    if any(p.dtype is torch.float16 for p in parameters):  # RMSprop divides by its learning rate
        return "has parameters in float16, which is too narrow for what a graph computes with them"
    return fusing.choice_or_form(optimizer)


def is_ready(optimizer: Any) -> bool:
    """Whether one that was made ready still has the settings for it."""
    if type(optimizer).__name__ in FUSED:
        return fusing.is_fused(optimizer)
    return not any(map(fusing.is_chosen, optimizer.param_groups))


def make_ready(torch: Any, optimizer: Any, again: bool) -> None:
    """`again`: it was before, and may have had a group added or a checkpoint loaded since."""
    kind = type(optimizer).__name__
    if kind in FUSED and not fusing.is_fused(optimizer):
        fusing.fuse(torch, optimizer, again)
    elif kind in FUSED and again:  # of one that the script has fused, a first step is its own
        fusing.complete(torch, optimizer)
    elif kind in UNFUSED:
        if not again and kind != ON_THE_DEVICE:
            save_as_plain(torch, optimizer, {})
        _count_on_the_device(torch, optimizer)


def _count_on_the_device(torch: Any, optimizer: Any) -> None:
    """A first update, and a checkpoint that is loaded, leave the count on the host."""
    for group in optimizer.param_groups:
        for p in group["params"]:
            state = optimizer.state.get(p, {})
            step = state.get("step")
            if torch.is_tensor(step) and step.device != p.device:
                state["step"] = step.to(p.device)
