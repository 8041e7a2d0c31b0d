"""What scaling and masking come to: one factor, and one mask that the fused kernel understands.

A score that is filled with −∞ has no weight. One filled with a large negative number has none
either, for its exponential is zero beside that of any other score, unless the whole row is filled:
then by hand all weights of the row are equal. A mask that is added is added by the kernel as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any

from hotloop.levers.attention.chain import Attention, Step
from hotloop.levers.attention.constants import Constants, number
from hotloop.levers.attention.nodes import NotUnderstood, dtype, is_node, is_tensor, shape

LARGE = -1e4
"""A fill from here down. The exponential of −104 is zero in float32, and scores are not that far
apart from each other; the least that people write is −10,000, for float16."""

MASK = "its mask is not understood"


@dataclass
class Masking:
    scale: float = 1.0
    factors: list[tuple[Any, bool]] = field(default_factory=list)
    """Tensors to multiply the queries by, or to divide them by: a learned temperature."""
    fills: list[tuple[Any, bool]] = field(default_factory=list)
    """Boolean masks, and whether they are true where a score is filled."""
    fill: float | None = None
    added: list[tuple[Any, bool]] = field(default_factory=list)
    """Masks that are added, and whether they are subtracted."""
    fill_nodes: list[Any] = field(default_factory=list)
    """Where a fill is a tensor rather than a number."""
    lead: tuple[Any, ...] | None = None
    """The scores' dimensions before queries and keys, where they were masked."""

    @property
    def is_needed(self) -> bool:
        return bool(self.fills or self.added)

    @property
    def nodes(self) -> list[Any]:
        return [node for node, _ in (*self.fills, *self.added)]


def read_masking(attention: Attention, constants: Constants) -> Masking:
    masking = Masking(attention.scores.scale)
    if attention.scores.added is not None:
        _add(masking, Step("add", attention.nodes[-1], attention.scores.added))
    for step in attention.steps:
        if step.name == "fill":
            _fill(masking, step, constants)
        elif step.name in ("add", "subtract"):
            _add(masking, step)
        elif step.name in ("multiply", "divide"):
            _scale(masking, step)
        elif step.name == "view" and shape(step.node)[-2:] != shape(attention.nodes[-1])[-2:]:
            raise NotUnderstood("its scores are reshaped in a way that is not understood")
        elif str(dtype(step.node)) not in _kernels_formats(attention):
            raise NotUnderstood(f"its scores are turned into {dtype(step.node)}")
    if masking.fills and (masking.fill or 0) > LARGE:  # having been scaled
        raise NotUnderstood(MASK)
    if masking.fills and masking.added and masking.fill != -inf:
        raise NotUnderstood(MASK)
    if masking.scale <= 0:  # kernels look for the largest score before they scale
        raise NotUnderstood("its scale is not positive")
    return masking


FORMATS = {"torch.float16", "torch.bfloat16", "torch.float32", "torch.float64"}


def _kernels_formats(attention: Attention) -> set[str]:
    """Formats that the kernel computes in, or more coarse ones: it adds up in float32 at least."""
    return FORMATS - ({"torch.float64"} - {str(dtype(attention.out))})


def _scale(masking: Masking, step: Step) -> None:
    by = step.other if isinstance(step.other, int | float) else None
    if masking.added or (masking.fills and (by is None or by <= 0)):
        raise NotUnderstood("its scores are scaled after they were masked")
    if by is not None:
        by = 1 / (by or inf) if step.name == "divide" else float(by)
        masking.scale *= by
        masking.fill = masking.fill * by if masking.fill is not None else None
    elif is_tensor(step.other) and shape(step.other)[-1:] not in ((), (1,)):
        raise NotUnderstood(MASK)  # multiplied by zeros, say
    elif is_node(step.other):
        masking.factors.append((step.other, step.name == "divide"))


def _fill(masking: Masking, step: Step, constants: Constants) -> None:
    value = number(step.fill, constants)
    if value is None or value > LARGE or not is_tensor(step.other):
        raise NotUnderstood(MASK)
    if str(dtype(step.other)) != "torch.bool" or masking.fill not in (None, value):
        raise NotUnderstood(MASK)
    masking.fill = value
    masking.fill_nodes += [step.fill] if is_node(step.fill) else []
    masking.fills.append((step.other, step.where))
    _stay(masking, step)


def _add(masking: Masking, step: Step) -> None:
    if isinstance(step.other, int | float):
        return  # the same for every key: the softmax does not see it
    if not is_tensor(step.other) or str(dtype(step.other)) not in FORMATS:
        raise NotUnderstood(MASK)
    masking.added.append((step.other, step.name == "subtract"))
    _stay(masking, step)


def _stay(masking: Masking, step: Step) -> None:
    lead = shape(step.node)[:-2]
    if masking.lead not in (None, lead):
        raise NotUnderstood("its scores are reshaped between two masks")
    masking.lead = lead


def kept(
    torch: Any, masking: Masking, constants: Constants, inputs: Sequence[Any] | None = None
) -> Any:
    """Where a score counts, as a tensor. None: masks change, or do more than let through."""
    if not all(constants.know(node) for node in masking.nodes):
        return None
    keep = torch.tensor(True)
    for node, where in masking.fills:
        mask = constants.value(node, inputs)
        keep = keep.to(mask.device) & (~mask if where else mask)
    for node, is_subtracted in masking.added:
        mask = constants.value(node, inputs)
        mask = -mask if is_subtracted else mask
        if not bool(((mask == 0) | (mask <= LARGE)).all()):
            return None
        keep = keep.to(mask.device) & (mask == 0)
    return keep


def is_causal(torch: Any, keep: Any) -> bool:
    """Whether each query sees the keys up to its own place, and all of those."""
    if keep is None or keep.dim() < 2 or keep.shape[-1] != keep.shape[-2]:
        return False
    return bool((keep == torch.ones_like(keep).tril()).all())
