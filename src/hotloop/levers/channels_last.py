"""Weights of convolutions in channels-last order, which their outputs then have too.

Only the order in memory changes: shapes, values and checkpoints stay as they are. In compiled code
it also outlasts instance and group norms: see `norms`.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse
from hotloop.levers.norms import keep_order
from hotloop.levers.safetensors import bear_channels_last
from hotloop.levers.saved_optimizer import is_alike, save_contiguous

if TYPE_CHECKING:
    from hotloop.levers.graphs import Captured
    from hotloop.seams import Seam, Seams

GAIN = 0.2
"""Of the model's own passes, where they are convolutions. Only a trial can tell."""
ONLY_1D = "it is for 2D and 3D convolutions, and the model has only 1D ones"


@dataclass
class ChannelsLast(Lever):
    name = "channels_last"
    summary = "convolutions with the channels last in memory"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    not_for_memory = ""

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._met: list[weakref.ref[Any]] = []
        self._converted: list[tuple[weakref.ref[Any], Any]] = []
        self._awaiting: dict[Any, Any] = {}
        """Weights whose optimizer has yet to step, and the order they have now."""
        self._convolutions = self._already = 0
        self._others: set[int] = set()
        """Dimensions of those that cannot be converted: 1D, or with weights computed anew."""
        self._graphs: list[tuple[Captured, int]] = []
        """And how many norms in them were rewritten."""

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        models = seen.measurement.inventory.models
        if any(model.channels_last for model in models):
            return refuse("the script already keeps its channels last")
        if not any(model.convolves for model in models):
            return refuse("no model was seen to have convolutions")
        if not any(model.convolutions for model in models):
            return refuse(ONLY_1D)
        return Expectation(seen.share("forward", "backward") * GAIN)

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        seams.model.before.append(lambda args, kwargs: self._convert(args[0], seams.captured))
        seams.step.before.append(self._follow)

    def receipt(self) -> Receipt:
        if not self._met:
            return self.not_applied("no model was seen to be called")
        if not self._convolutions:
            return self.not_applied(self._why_none())
        if not self._converted:
            why = "are already in that order" if self._already else "have one channel or one pixel"
            return self.not_applied(f"the model's convolutions {why}")
        alive = [(weight, order) for ref, order in self._converted if (weight := ref()) is not None]
        kept = sum(_is_in(weight, order) for weight, order in alive)
        if alive and not kept:
            return self.not_applied("the script put its weights into another order")
        evidence = {"convolutions": self._convolutions, "converted": len(self._converted)}
        if norms := sum(count for graph, count in self._graphs if graph.runs):
            evidence["norms"] = norms
        return self.applied(**evidence)

    def _why_none(self) -> str:
        if not self._others:
            return "the model has no convolutions"
        if self._others == {1}:
            return ONLY_1D
        return "the model has no weights of its own for its convolutions"

    def _convert(self, module: Any, captured: Seam) -> None:
        """A root's weights, once. Its inputs need not be: a kernel follows either of the two."""
        if any(known() is module for known in self._met):
            return
        self._met.append(weakref.ref(module))
        for weight, order in self._weights(module):
            self._convolutions += 1
            if _is_in(weight, order):
                self._already += 1
                continue
            weight.data = weight.data.contiguous(memory_format=order)
            if not _is_in(weight, order):
                continue  # with one channel or one pixel both orders are the same
            if weight.grad is not None:
                weight.grad.data = weight.grad.data.contiguous(memory_format=order)
            if not self._converted:
                bear_channels_last(self._torch)
            self._converted.append((weakref.ref(weight), order))
            if weight.requires_grad:
                self._awaiting[weight] = order
        norms = self._torch.nn.modules.instancenorm._InstanceNorm, self._torch.nn.GroupNorm
        has_norms = any(isinstance(part, norms) for part in module.modules())
        if has_norms and self._keep_order not in captured.before:
            captured.before.append(self._keep_order)

    def _keep_order(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._graphs.append((args[0], keep_order(self._torch, args[0])))

    def _weights(self, module: Any) -> Iterator[tuple[Any, Any]]:
        torch = self._torch
        orders = {4: torch.channels_last, 5: torch.channels_last_3d}
        for part in module.modules():
            if isinstance(part, torch.nn.modules.conv._ConvNd):
                weight = part._parameters.get("weight")
                is_there = weight is not None and not hasattr(weight, "materialize")  # not lazy
                order = orders.get(weight.dim()) if is_there else None
                if order is None:
                    self._others.add(len(part.kernel_size))
                else:
                    yield weight, order

    def _follow(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """What the optimizer keeps for each weight: its fast kernels want one order for all."""
        if not self._awaiting:
            return
        optimizer = args[0]
        orders = {
            weight: self._awaiting.pop(weight)
            for group in optimizer.param_groups
            for weight in group["params"]
            if weight in self._awaiting
        }
        _reorder(optimizer, orders)
        if orders:  # a checkpoint brings what the optimizer keeps in the order it was saved in
            optimizer.register_load_state_dict_post_hook(partial(_reorder, orders=orders))
            save_contiguous(optimizer, orders)


def _reorder(optimizer: Any, orders: dict[Any, Any]) -> None:
    for weight, order in orders.items():
        for value in optimizer.state.get(weight, {}).values():
            if is_alike(value, weight):
                value.data = value.data.contiguous(memory_format=order)


def _is_in(weight: Any, order: Any) -> bool:
    return bool(weight.is_contiguous(memory_format=order)) and not weight.is_contiguous()
