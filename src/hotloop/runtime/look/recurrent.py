"""Floating-point operations of recurrent layers that torch computes as one operator.

Every token meets every weight once: each is a multiplication and an addition. A bias is no product.
Layers that torch takes apart are made of products that are counted by themselves; what is left of
their cells goes over its operands once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any

Formula = Callable[..., float]


def formulas(aten: Any) -> Iterator[tuple[Any, Formula]]:
    """For those that this build of torch has."""
    known: tuple[tuple[str, Formula], ...] = (
        ("mkldnn_rnn_layer", _a_layer),
        ("mkldnn_rnn_layer_backward", _a_layer_backward),
        ("_cudnn_rnn", _all_layers),
        ("_cudnn_rnn_backward", _all_layers_backward),
        ("miopen_rnn", _all_layers),
        ("miopen_rnn_backward", _all_layers_backward),
    )
    for name, formula in known:
        packet = getattr(aten, name, None)
        if packet is not None:
            yield packet, formula


def _a_layer(data: Any, of_input: Any, of_state: Any, *args: Any, **kwargs: Any) -> float:
    """One direction of one layer."""
    return _products(data, [of_input, of_state])


def _a_layer_backward(data: Any, of_input: Any, of_state: Any, *args: Any, **kwargs: Any) -> float:
    """Gradients of what came in and of the weights: oneDNN always computes both."""
    return 2 * _products(data, [of_input, of_state])


def _all_layers(data: Any, weights: list[Any], *args: Any, **kwargs: Any) -> float:
    return _products(data, weights)


def _all_layers_backward(data: Any, weights: list[Any], *args: Any, **kwargs: Any) -> float:
    """What is wanted is named by the last argument: input, states, and at last the weights."""
    wants = kwargs["output_mask"] if "output_mask" in kwargs else args[-1]
    return (1 + bool(wants[3])) * _products(data, weights)


def _products(data: Any, weights: list[Any]) -> float:
    """Time and batch are the first two sizes, in either order, or one where sequences are packed.

    A projection is a third matrix of its layer.
    """
    tokens = float(prod(data.shape[:-1]))
    met = sum(int(weight.numel()) for weight in weights if weight.dim() == 2)
    return 2 * tokens * met
