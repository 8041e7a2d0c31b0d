"""Matrix products and convolutions in float16, by autocast; gradients scaled on their way back.

The loss is scaled where it is differentiated, and gradients are unscaled before the script sees
them: one that clips or logs them needs no change. A step whose gradients are not finite is skipped,
as torch's own gradient scaler skips it. Weights, checkpoints and the loss that the script sees stay
as they are.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.autocasting import LOOKS, LOWER, Autocasting, nodes
from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse
from hotloop.levers.leaves import Leaves
from hotloop.levers.scaling import Scaler
from hotloop.levers.skipping import Skipping

if TYPE_CHECKING:
    from hotloop.seams import Seams

AGAIN = "the script differentiates its gradients again, and would do so with scaled ones"
BY_HAND = "no optimizer is there whose step could be skipped when gradients overflow"
HOOKS = "gradients pass through hooks of the script's own, which would see them scaled"
ITSELF = "the script scales its gradients itself"
NOT_ADDED_UP = "the script differentiates by torch.autograd.grad, whose result would not be scaled"
SEVERAL = "the script differentiates several losses at once"
SPREAD = "the model's weights lie on several devices"


@dataclass
class Fp16(Lever):
    name = "fp16"
    summary = "matrix products and convolutions in float16, gradients scaled"
    group = Group.PRECISION
    effect = Effect.LOWER_PRECISION
    not_for_memory = ""
    mantissa = 10
    # Of two formats only one can be computed in. Replayed steps tell neither of a loss that is
    # about to be differentiated nor of a step that is about to be made.
    conflicts = ("bf16", "step_graph")

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._cast = Autocasting("float16")
        self._leaves = Leaves()
        self._scaler: Scaler | None = None
        self._skipping = Skipping(self._stop)
        self._met: weakref.WeakSet[Any] = weakref.WeakSet()
        self._hook: Any = None
        """On the loss that is being differentiated."""
        self._looks = self._scaled = 0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        inventory, software = seen.measurement.inventory, seen.measurement.software
        formats = {dtype for model in inventory.models for dtype in model.dtypes}
        for found in LOWER:
            if inventory.precision.autocast == found or formats == {found}:
                return refuse(f"the script already computes in {found}")
        if inventory.precision.grad_scaler:
            return refuse(ITSELF)
        if software.device == "cpu":
            return refuse("float16 is for GPUs")
        if software.bfloat16 is not False and cls.name not in seen.only:
            return refuse("this GPU has bfloat16, which needs no scaling; --only fp16 asks for it")
        return Expectation(seen.share("forward", "backward") / 2)

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        seams.scale.before.append(self._scale_itself)
        for seam in (seams.optimizer, seams.step):  # one that was unpickled was never built
            seam.before.append(lambda args, kwargs: self._leaves.note_optimizer(args[0]))
        seams.retained.before.append(lambda args, kwargs: self._leaves.note(args[0]))
        seams.model.before.append(self._call)
        self._cast.attach(torch, seams)  # what is about to be differentiated is no longer under it
        seams.backward.before.append(self._begin)
        seams.backward.after.append(self._end)
        seams.grad.before.append(self._differentiate)
        self._skipping.attach(seams)

    def receipt(self) -> Receipt:
        cast, skipping, scaler = self._cast, self._skipping, self._scaler
        if cast.problem:
            return self.not_applied(cast.problem)
        if not cast.took_effect or scaler is None:
            return self.not_applied(cast.why_not())
        self._catch_up(scaler)
        if skipping.steps and skipping.skipped == skipping.steps:
            return self.not_applied("every step was skipped, for gradients that are not finite")
        return self.applied(
            products_in_fp16=cast.low,
            products=cast.products,
            passes_scaled=self._scaled,
            steps=skipping.steps,
            steps_skipped=skipping.skipped,
            scale=float(scaler.scale),
            own_autocast=cast.has_own,
        )

    def _stop(self, problem: str) -> None:
        """From here on the script trains as it is."""
        self._cast.stop(problem)
        self._skipping.is_over = True

    def _scale_itself(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if args[0].is_enabled():
            self._stop(ITSELF)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        model = args[0]
        if not self._torch.is_grad_enabled():
            return
        if model not in self._met:
            self._met.add(model)
            if any(part._backward_hooks or part._backward_pre_hooks for part in model.modules()):
                self._stop(HOOKS)
        for tensor in _tensors(self._torch, (*args[1:], *kwargs.values())):
            if tensor.requires_grad and tensor.is_leaf:
                self._leaves.note(tensor)

    def _begin(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._cast.problem or not self._is_the_scripts():
            return
        given = args[0] if args else kwargs["tensors"]
        losses = [given] if isinstance(given, self._torch.Tensor) else list(given)
        if reason := self._obstacle(losses, *args[3:4], *[kwargs.get("create_graph")]):
            self._stop(reason)
        elif self._cast.passes and losses[0].grad_fn is not None:
            self._scale(losses[0])

    def _obstacle(self, losses: list[Any], *again: Any) -> str:
        if len(losses) != 1:
            return SEVERAL
        if any(again):
            return AGAIN
        if self._cast.passes and not self._leaves.has_optimizers:
            return BY_HAND
        if self._looks < LOOKS and self._cast.passes:
            self._looks += 1
            if self._look(losses[0]) - {losses[0].device}:
                return SPREAD
        return HOOKS if self._leaves.have_hooks() else ""

    def _look(self, loss: Any) -> set[Any]:
        """At all that gradients will be gathered in; the devices that it lies on."""
        found = [node.variable for node in nodes(loss) if hasattr(node, "variable")]
        for tensor in found:
            self._leaves.note(tensor)
        return {tensor.device for tensor in found}

    def _scale(self, loss: Any) -> None:
        """By a hook: the script's loss, and what it keeps of it, stay as they are."""
        scaler = self._scaler = self._scaler or Scaler(self._torch, loss.device)
        self._catch_up(scaler)
        scaler.scale_(self._leaves.gradients())
        self._hook = loss.register_hook(scaler.scaled)
        self._scaled += 1

    def _catch_up(self, scaler: Scaler) -> None:
        """Once for all steps since: several optimizers may step by one backward pass."""
        if flags := self._skipping.taken():
            scaler.update(flags)

    def _end(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        """At once, and on the device: the script may clip or read gradients next."""
        if self._hook is None or self._scaler is None or not self._is_the_scripts():
            return
        self._hook.remove()
        self._hook = None
        for found in self._leaves.gathered():
            flag = self._skipping.flag(found.optimizer, self._scaler)
            self._scaler.unscale_(found.own, flag)
            self._scaler.check(found.shared, flag)

    def _differentiate(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._is_the_scripts():
            self._stop(NOT_ADDED_UP)

    def _is_the_scripts(self) -> bool:
        """Not torch's own, which computes a block again on the way back."""
        return bool(self._torch._C._current_graph_task_id() == -1)


def _tensors(torch: Any, value: Any, depth: int = 4) -> Iterator[Any]:
    if isinstance(value, torch.Tensor):
        yield value
    elif depth and isinstance(value, list | tuple | Mapping):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors(torch, part, depth - 1)
