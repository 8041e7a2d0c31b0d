"""An optimizer switched to its fused kernel, as `fused=True` would have done when it was built."""

from __future__ import annotations

from typing import Any

from hotloop.levers.saved_optimizer import is_alike, save_as_plain

KERNELS = {
    "Adagrad": "_fused_adagrad_",
    "Adam": "_fused_adam_",
    "AdamW": "_fused_adamw_",
    "SGD": "_fused_sgd_",
}


def obstacle(torch: Any, optimizer: Any) -> str:
    """Why it cannot be switched; empty when it can."""
    kind, groups = type(optimizer), optimizer.param_groups
    kernel = KERNELS.get(kind.__name__)
    if kernel is None or kind is not getattr(torch.optim, kind.__name__):
        return "has no fused kernel"
    if reason := choice_or_form(optimizer):
        return reason
    for device in sorted({p.device.type for group in groups for p in group["params"]}):
        if not _has_kernel(torch, kernel, device):
            return f"has no fused kernel for {device}"
    if kind.__name__ == "SGD" and any(_needs_first_step(group) for group in groups):
        return "has dampening, or momentum for parameters that are frozen"
    return ""


def choice_or_form(optimizer: Any) -> str:
    """Why no implementation should take the place of the script's; empty when one can."""
    groups = optimizer.param_groups
    if optimizer.defaults.get("fused") is False or any(map(is_chosen, groups)):
        return "has an implementation that the script has chosen itself"
    parameters = [p for group in groups for p in group["params"]]
    if not all(p.is_floating_point() for p in parameters):
        return "has parameters that are not real numbers"
    if any(p.grad is not None and p.grad.is_sparse for p in parameters):
        return "has sparse gradients"
    if any(map(_has_gaps, parameters)):
        return "has parameters with gaps between their numbers in memory"
    return ""


def is_chosen(group: dict[str, Any]) -> bool:
    """Other implementations can be captured in a graph, but not differentiated."""
    return bool(group.get("differentiable")) or group.get("foreach") is not None


def is_fused(optimizer: Any) -> bool:
    return all(group.get("fused") for group in optimizer.param_groups)


def fuse(torch: Any, optimizer: Any, again: bool) -> None:
    """What the constructors do with fused=True, and what they would have had in their state.

    `again`: it was switched before, and has had a group added or settings loaded since.
    """
    if not again:
        save_as_plain(torch, optimizer, {"fused": optimizer.defaults.get("fused")})
    optimizer.defaults["fused"] = True
    optimizer._step_supports_amp_scaling = True  # a gradient scaler leaves unscaling to it
    for group in optimizer.param_groups:
        group["fused"] = True
        for p in group["params"]:
            _convert(torch, optimizer.state.get(p, {}), p)
    complete(torch, optimizer)


def complete(torch: Any, optimizer: Any) -> None:
    """Fused SGD knows a first step of all parameters only, not of one that joins in later."""
    for group in optimizer.param_groups:
        for p in group["params"] if group.get("momentum") else ():
            state = optimizer.state[p]
            if state.get("momentum_buffer") is None:
                state["momentum_buffer"] = torch.zeros_like(p)


def _convert(torch: Any, state: dict[str, Any], p: Any) -> None:
    if torch.is_tensor(state.get("step")):
        state["step"] = state["step"].to(device=p.device, dtype=torch.float32)
    for name, value in state.items():  # from a checkpoint, in the order that it was saved in
        if is_alike(value, p) and value.stride() != p.stride():
            state[name] = torch.empty_like(p, dtype=value.dtype).copy_(value)


def _has_kernel(torch: Any, kernel: str, device: str) -> bool:
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    return device in ("cpu", "cuda", "mps", "xpu") and has(f"aten::{kernel}", device.upper())


def _has_gaps(p: Any) -> bool:
    """Parts of a larger tensor: gradients have none, and the kernels take both alike."""
    dense = 1
    for stride, size in sorted(zip(p.stride(), p.shape, strict=True)):
        if size > 1 and stride != dense:
            return True
        dense *= size
    return False


def _needs_first_step(group: dict[str, Any]) -> bool:
    """Whether a momentum buffer of zeros would not do for a parameter's first step."""
    frozen = any(not p.requires_grad for p in group["params"])
    return bool(group["momentum"] and (group["dampening"] or frozen))
