"""How many floating-point operations an operator makes, by its operands' shapes.

torch's own formulas, and those it lacks. A multiplication and an addition are two operations. As in
torch's counter a backward pass of fused attention counts the scores it computes again.
"""

from __future__ import annotations

from math import prod
from typing import Any

from hotloop.runtime.look import recurrent

HEAVY = ("lstm", "gru", "rnn", "fft", "linalg", "cholesky", "conv", "attention", "linear", "_mm")
"""An operator with one of these in its name and no formula makes the count a lower bound."""
LIGHT = ("linalg_vector_norm", "linalg_cross", "_thnn_", "flatten_weight", "fftfreq")
"""But for these, which go over their operands once: of a recurrent cell the products are counted
by themselves."""


class Formulas:
    def __init__(self, torch: Any) -> None:
        from torch.utils.flop_counter import flop_registry

        aten = torch.ops.aten
        self._known: dict[Any, Any] = dict(flop_registry)
        for packet, formula in recurrent.formulas(aten):
            self._known.setdefault(packet, formula)
        name = "_scaled_dot_product_flash_attention_for_cpu"
        for suffix, formula in (("", _attention), ("_backward", _attention_backward)):
            packet = getattr(aten, name + suffix, None)
            if packet is not None:
                self._known.setdefault(packet, formula)

    def knows(self, packet: Any) -> bool:
        return packet in self._known

    def of(self, packet: Any, args: Any, kwargs: Any, result: Any) -> float:
        return float(self._known[packet](*args, **kwargs, out_val=result))


def is_heavy(name: str) -> bool:
    return any(part in name for part in HEAVY) and not any(part in name for part in LIGHT)


def _attention(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> float:
    """Scores and values: two products."""
    return _product(query, key.shape[-2], query.shape[-1]) + _product(
        query, key.shape[-2], value.shape[-1]
    )


def _attention_backward(
    gradient: Any, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any
) -> float:
    """Scores again, then the gradients of values, weights, queries and keys: five products."""
    width = _product(query, key.shape[-2], query.shape[-1])
    height = _product(query, key.shape[-2], value.shape[-1])
    return 3 * width + 2 * height


def _product(query: Any, keys: int, width: int) -> float:
    return 2.0 * float(prod(query.shape[:-1])) * keys * width
