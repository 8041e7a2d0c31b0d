"""The fused call, written into a graph in place of what was there."""

from __future__ import annotations

import operator
from math import inf
from typing import Any

from hotloop.levers.attention.chain import Attention
from hotloop.levers.attention.masking import LARGE, Masking
from hotloop.levers.attention.nodes import (
    CASTS,
    VIEWS,
    NotUnderstood,
    dtype,
    example,
    given,
    is_dead,
    is_tensor,
    is_written,
    plain_name,
    shape,
)
from hotloop.levers.attention.products import Operand

MOVES = {*VIEWS, "transpose", "permute", "contiguous", "getattr", "expand"}
LOW = ("torch.float16", "torch.bfloat16")


class Writer:
    """Of one attention."""

    def __init__(self, torch: Any, graph: Any, attention: Attention, masking: Masking) -> None:
        self._torch, self._graph = torch, graph
        self._attention, self._masking = attention, masking
        self._format = dtype(attention.out)
        scores = attention.scores
        self._query, self._key, self._value = scores.query, scores.key, attention.spent.value
        self._own_lead = self._query.shape[:-2]
        """The dimensions before queries and size."""
        self._lead = self._own_lead if masking.lead is None else masking.lead
        """The same as the masks want them."""
        self._require_shapes()
        self._require_formats()
        self._require_untouched()

    def fits(self, keep: Any) -> bool:
        """A causal kernel counts places from the first query and key: there must be as many."""
        queries, keys = self._query.shape[-2], self._key.shape[-2]
        if queries != keys or keep is None:
            return False
        if isinstance(queries, int):
            return tuple(keep.shape[-2:]) == (queries, keys)
        # A length that may change. Any beginning of a causal mask is causal, if as much is cut off
        # below as to the right; what was broadcast to the scores has their length. Two masks may
        # be of different sizes.
        masks = [shape(node)[-2:] for node in self._masking.nodes]
        return len(masks) == 1 and masks[0][0] == masks[0][1] and isinstance(masks[0][0], str)

    def require_mask_format(self) -> None:
        """Autocast would round an added mask to the scores' format; by hand it was not."""
        if any(dtype(node) != self._format for node, _ in self._masking.added):
            raise NotUnderstood("its mask has another number format than its values")

    def write(self, causal: bool) -> None:
        attention, graph = self._attention, self._graph
        with graph.inserting_before(attention.out):
            parts = (self._query, self._key, self._value)
            query, key, value = (self._four(each) for each in parts)
            for factor, is_divided in self._masking.factors:
                query = self._call(operator.truediv if is_divided else operator.mul, query, factor)
            mask, dead = (None, None) if causal else self._mask()
            made = graph.call_function(
                self._torch.nn.functional.scaled_dot_product_attention,
                (query, key, value),
                {
                    "attn_mask": mask,
                    "dropout_p": attention.dropout,
                    "is_causal": causal,
                    "scale": self._masking.scale,
                },
            )
            if dead is not None:
                mean = graph.call_method("mean", (value, -2), {"keepdim": True})
                made = self._call(self._torch.where, dead, mean, made)
            made = self._as_before(made)
        made.meta.update(attention.out.meta)
        attention.out.replace_all_uses_with(made)
        for node in attention.nodes:  # the last first; dropout would go on drawing numbers
            self._erase(node)

    def _mask(self) -> tuple[Any, Any]:
        """In the kernel's terms, and which rows are filled altogether by something finite."""
        keep = None
        for node, where in self._masking.fills:
            each = self._call(operator.invert, node) if where else node
            keep = each if keep is None else self._call(operator.and_, keep, each)
        added = self._added()
        if added is not None:
            if keep is not None:
                added = self._call(self._torch.where, self._flat(keep), added, -inf)
            return added, None
        if keep is None:
            return None, None
        keep = self._flat(keep)
        if self._masking.fill == -inf:
            return keep, None
        any_left = self._graph.call_method("any", (keep, -1), {"keepdim": True})
        dead = self._call(operator.invert, any_left)
        return self._call(operator.or_, keep, dead), dead

    def _added(self) -> Any:
        total = None
        for node, is_subtracted in self._masking.added:
            each = self._call(operator.neg, node) if is_subtracted else node
            total = each if total is None else self._call(operator.add, total, each)
        if total is None:
            return None
        return self._lifted(self._flat(total))

    def _lifted(self, mask: Any) -> Any:
        """Rows that are low altogether are raised to zero, which a softmax does not see.

        Kernels keep the logarithm of a row's sum for the way back: beside −10⁹ it has no digits
        left. And they multiply by log₂e, by which float32's lowest number becomes −∞.
        """
        highest = self._graph.call_method("amax", (mask, -1), {"keepdim": True})
        highest = self._graph.call_method("detach", (highest,))
        is_low = self._call(operator.le, highest, LARGE)
        return self._call(operator.sub, mask, self._call(self._torch.where, is_low, highest, 0.0))

    def _flat(self, mask: Any) -> Any:
        """Kernels take masks of two or four dimensions."""
        missing = 4 - max(len(shape(node)) for node in self._masking.nodes)
        return self._call(operator.getitem, mask, (*[None] * missing, ...)) if missing else mask

    def _four(self, operand: Operand) -> Any:
        """Batch, heads, places, size: with fewer dimensions only the slow kernel is there."""
        node = operand.node
        if dtype(node) != self._format and _was(node, self._format):
            node = self._graph.call_method("to", (node, self._format))
        if not operand.is_as_it_is:
            node = self._graph.call_method("permute", (node, *operand.order))
        if self._lead != self._own_lead:
            lead = (1,) * (2 - len(self._lead)) + self._lead
            return self._graph.call_method("reshape", (node, *lead, *operand.shape[-2:]))
        return node if len(self._lead) == 2 else self._call(operator.getitem, node, (None, ...))

    def _as_before(self, made: Any) -> Any:
        if self._lead != self._own_lead:
            sizes = (*self._own_lead, self._query.shape[-2], self._value.shape[-1])
            made = self._graph.call_method("reshape", (made, *sizes))
        elif len(self._own_lead) == 1:
            made = self._call(operator.getitem, made, 0)
        order = self._attention.spent.order
        if order != tuple(range(len(order))):
            made = self._graph.call_method("permute", (made, *order))
        return made

    def _erase(self, node: Any) -> None:
        for user in list(node.users):
            if is_dead(user):
                self._erase(user)
        if not node.users:
            self._graph.erase_node(node)

    def _require_shapes(self) -> None:
        query, key, value = (each.shape for each in (self._query, self._key, self._value))
        if len(self._own_lead) not in (1, 2) or len(self._lead) not in (1, 2):
            raise NotUnderstood("it has other dimensions than batch, heads, places and size")
        if not query[:-2] == key[:-2] == value[:-2]:
            raise NotUnderstood("its queries, keys and values have different batches or heads")
        if key[-2] != value[-2] or query[-1] != key[-1]:
            raise NotUnderstood("its queries, keys and values do not go together")
        if self._lead != self._own_lead:
            sizes = (*query, *key, *value, *self._lead)
            if any(isinstance(size, str) for size in sizes) or self._masking.factors:
                raise NotUnderstood("it is reshaped to sizes that are not known")

    def _require_formats(self) -> None:
        parts = (self._query, self._key, self._value)
        formats = {
            self._format if _was(each.node, self._format) else dtype(each.node) for each in parts
        }
        device = example(self._attention.out).device.type
        is_cast = str(self._format) in LOW and self._torch.is_autocast_enabled(device)
        if formats != {self._format} and not is_cast:
            raise NotUnderstood("its queries, keys and values have different number formats")
        for factor, _ in self._masking.factors:
            if is_tensor(factor) and shape(factor) and dtype(factor) != dtype(self._query.node):
                raise NotUnderstood("its scale has another number format")

    def _require_untouched(self) -> None:
        """What the kernel reads later than the scores did must not be written to in between."""
        parts = [each.node for each in (self._query, self._key, self._value)]
        factors = [factor for factor, _ in self._masking.factors]
        for node in (*parts, *self._masking.nodes, *factors):
            if is_written(node):
                raise NotUnderstood("its parts are changed in place")

    def _call(self, function: Any, *args: Any) -> Any:
        return self._graph.call_function(function, args)


def _was(node: Any, wanted: Any) -> bool:
    """Queries turned into float32 for the product by hand: the way back loses nothing."""
    while plain_name(node) in MOVES:
        node = given(node, 0, "input")
    is_cast = plain_name(node) in CASTS
    return is_cast and dtype(given(node, 0, "input")) == wanted
