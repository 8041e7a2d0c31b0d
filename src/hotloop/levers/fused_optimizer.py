"""The optimizer updates all parameters in a few kernels that do the whole update at once.

By default torch runs one kernel an operation, over a group of parameters on a GPU and over each
parameter on a CPU. An optimizer for which the script has chosen an implementation is left alone.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse
from hotloop.levers.saved_optimizer import is_alike, save_as_plain

if TYPE_CHECKING:
    from hotloop.seams import Seams

KERNELS = {
    "Adagrad": "_fused_adagrad_",
    "Adam": "_fused_adam_",
    "AdamW": "_fused_adamw_",
    "SGD": "_fused_sgd_",
}
UPDATING = 0.01


@dataclass
class FusedOptimizer(Lever):
    name = "fused_optimizer"
    summary = "the optimizer's whole update in fused kernels"
    group = Group.GRAPH
    effect = Effect.SAME_MATH

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._fused: weakref.WeakSet[Any] = weakref.WeakSet()
        self._refused: weakref.WeakSet[Any] = weakref.WeakSet()
        self._reasons: list[str] = []
        self._names: set[str] = set()
        self._originals: dict[str, Any] = {}
        self._launches = self._steps = 0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        optimizers = seen.measurement.inventory.optimizers
        known = [one for one in optimizers if one.name in KERNELS]
        share = seen.share("optimizer")
        if not optimizers:
            return refuse("no optimizer steps")
        if not known:
            return refuse(f"{optimizers[0].name} has no fused kernel")
        if all(one.fused for one in known):
            return refuse("the script's optimizer is already fused")
        if all(one.fused or one.foreach is not None for one in known):
            return refuse("the script has chosen the optimizer's implementation itself")
        if share < UPDATING:
            return refuse(f"the optimizer takes {share:.1%} of a step")
        return Expectation(share / 2)

    def apply(self, torch: Any, seams: Seams) -> None:
        """At steps rather than when it is built: only then are all parameters where they stay."""
        self._torch = torch
        seams.step.before.append(self._before)
        seams.step.after.append(self._after)

    def receipt(self) -> Receipt:
        if self._steps and self._launches:
            names = ", ".join(sorted(self._names))
            return self.applied(optimizers=names, steps=self._steps, launches_seen=self._launches)
        if self._steps:
            return self.not_applied("its fused kernel never ran")
        return self.not_applied(self._reasons[0] if self._reasons else "no optimizer stepped")

    def _before(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Every time: a group may have been added since, or settings loaded from a checkpoint."""
        optimizer = args[0]
        if optimizer in self._refused:
            return
        if all(group.get("fused") for group in optimizer.param_groups):
            if optimizer not in self._fused:
                self._refuse(optimizer, "is already fused")
        elif reason := self._obstacle(optimizer):
            self._refuse(optimizer, reason)
        else:
            self._fuse(optimizer)

    def _after(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._steps += args[0] in self._fused
        while self._originals:
            setattr(self._torch, *self._originals.popitem())

    def _refuse(self, optimizer: Any, reason: str) -> None:
        self._refused.add(optimizer)
        self._reasons.append(f"its {type(optimizer).__name__} {reason}")

    def _obstacle(self, optimizer: Any) -> str:
        kind, groups = type(optimizer), optimizer.param_groups
        kernel = KERNELS.get(kind.__name__)
        if kernel is None or kind is not getattr(self._torch.optim, kind.__name__):
            return "has no fused kernel"
        if optimizer.defaults.get("fused") is False or any(map(_is_chosen, groups)):
            return "has an implementation that the script has chosen itself"
        parameters = [p for group in groups for p in group["params"]]
        if not all(p.is_floating_point() for p in parameters):
            return "has parameters that are not real numbers"
        if any(p.grad is not None and p.grad.is_sparse for p in parameters):
            return "has sparse gradients"
        if any(map(_has_gaps, parameters)):
            return "has parameters with gaps between their numbers in memory"
        for device in sorted({p.device.type for p in parameters}):
            if not self._has_kernel(kernel, device):
                return f"has no fused kernel for {device}"
        if kind.__name__ == "SGD" and any(_needs_first_step(group) for group in groups):
            return "has dampening, or momentum for parameters that are frozen"
        return ""

    def _has_kernel(self, kernel: str, device: str) -> bool:
        has = self._torch._C._dispatch_has_kernel_for_dispatch_key
        return device in ("cpu", "cuda", "mps", "xpu") and has(f"aten::{kernel}", device.upper())

    def _fuse(self, optimizer: Any) -> None:
        """What the constructors do with fused=True, and what they would have had in their state."""
        name = type(optimizer).__name__
        if optimizer not in self._fused:
            save_as_plain(self._torch, optimizer, {"fused": optimizer.defaults.get("fused")})
        optimizer.defaults["fused"] = True
        optimizer._step_supports_amp_scaling = True  # a gradient scaler leaves unscaling to it
        for group in optimizer.param_groups:
            group["fused"] = True
            for p in group["params"]:
                self._complete(optimizer.state, group, p)
        self._fused.add(optimizer)
        self._names.add(name)
        self._count_launches(KERNELS[name])

    def _complete(self, states: Any, group: dict[str, Any], p: Any) -> None:
        state = states.get(p, {})
        if self._torch.is_tensor(state.get("step")):
            state["step"] = state["step"].to(device=p.device, dtype=self._torch.float32)
        for name, value in state.items():  # from a checkpoint, in the order that it was saved in
            if is_alike(value, p) and value.stride() != p.stride():
                state[name] = self._torch.empty_like(p, dtype=value.dtype).copy_(value)
        # Fused SGD knows a first step of all parameters only, not of one that joins in later.
        if group.get("momentum") and state.get("momentum_buffer") is None:
            states[p]["momentum_buffer"] = self._torch.zeros_like(p)

    def _count_launches(self, kernel: str) -> None:
        """During one step: evidence need not cost anything in the others."""
        launch = self._originals.setdefault(kernel, getattr(self._torch, kernel))

        def counted(*args: Any, **kwargs: Any) -> Any:
            self._launches += 1
            return launch(*args, **kwargs)

        setattr(self._torch, kernel, counted)


def _has_gaps(p: Any) -> bool:
    """Parts of a larger tensor: gradients have none, and the kernels take both alike."""
    dense = 1
    for stride, size in sorted(zip(p.stride(), p.shape, strict=True)):
        if size > 1 and stride != dense:
            return True
        dense *= size
    return False


def _is_chosen(group: dict[str, Any]) -> bool:
    """Fused kernels can be captured in a graph, but not differentiated."""
    return bool(group.get("differentiable")) or group.get("foreach") is not None


def _needs_first_step(group: dict[str, Any]) -> bool:
    """Whether a momentum buffer of zeros would not do for a parameter's first step."""
    frozen = any(not p.requires_grad for p in group["params"])
    return bool(group["momentum"] and (group["dampening"] or frozen))
