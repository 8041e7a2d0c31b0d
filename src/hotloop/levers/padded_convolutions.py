"""Convolutions of odd channels in a captured graph, done on operands that are padded with zeros.

Tensor cores take channels by the sixteen bytes. For a picture's three, or a volume's one, cuDNN
copies input and weights into padded ones in passes of their own, for the convolution and for the
gradient of its weights, or takes a kernel without tensor cores. Padded in the graph, the zeros are
written where the input is cast and turned around anyway. What is added is cut off the result, and
gradients know nothing of it.
"""

from __future__ import annotations

from typing import Any

from hotloop.levers.attention.nodes import dtype, example, given, is_tensor, name_of, shape
from hotloop.levers.graphs import Captured
from hotloop.levers.padded_products import ALIGNED, COARSEST

FUNCTIONS = ("conv1d", "conv2d", "conv3d")
OPERANDS = ("input", "weight", "bias")


def has_odd_channels(torch: Any, module: Any) -> bool:
    """Whether it is a convolution that would be padded in a 16-bit format."""
    if not isinstance(module, torch.nn.modules.conv._ConvNd) or module.transposed:
        return False
    channels = module.in_channels, module.out_channels
    return module.groups == 1 and any(each % COARSEST for each in channels)


def pad_convolutions(torch: Any, captured: Captured) -> int:
    """How many were."""
    graph = captured.graph.graph
    padded = sum([_pad(torch, graph, node) for node in list(graph.nodes)])
    if padded:
        graph.lint()
        captured.graph.recompile()
    return padded


def _pad(torch: Any, graph: Any, node: Any) -> bool:
    if name_of(node) not in FUNCTIONS or not is_tensor(node) or str(dtype(node)) not in ALIGNED:
        return False
    x, weight, bias = (given(node, place, name) for place, name in enumerate(OPERANDS))
    if not is_tensor(x) or not is_tensor(weight) or given(node, 6, "groups", 1) != 1:
        return False
    if len(shape(x)) != len(shape(weight)):
        return False  # one sample, without the dimension of a batch
    needed, (outputs, inputs, *kernel) = ALIGNED[str(dtype(node))], shape(weight)
    if not isinstance(outputs, int) or not isinstance(inputs, int):
        return False
    inner, outer = -inputs % needed, -outputs % needed
    if not inner and not outer:
        return False
    along = (0, 0) * len(kernel)
    with graph.inserting_before(node):

        def padded(part: Any, *more: int) -> Any:
            if part is None or not any(more):
                return part
            return graph.call_function(torch.nn.functional.pad, (part, more))

        made = _convolution(
            graph,
            node,
            padded(x, *along, 0, inner),
            padded(weight, *along, 0, inner, 0, outer),
            padded(bias, 0, outer),
        )
        if outer:
            made = graph.call_function(torch.narrow, (made, 1, 0, outputs))
            order = {"memory_format": _order(torch, example(node))}
            made = graph.call_method("contiguous", (made,), order)
    made.meta.update(node.meta)
    node.replace_all_uses_with(made)
    graph.erase_node(node)
    return True


def _convolution(graph: Any, node: Any, *operands: Any) -> Any:
    """The same, of other operands."""
    args, kwargs = [*node.args], {**node.kwargs}
    for place, (name, operand) in enumerate(zip(OPERANDS, operands, strict=True)):
        if place < len(args):
            args[place] = operand
        elif name in kwargs:
            kwargs[name] = operand
    return graph.call_function(node.target, tuple(args), kwargs)


def _order(torch: Any, made: Any) -> Any:
    """In memory. A script may look at a result in any way that its order allows."""
    last = {4: torch.channels_last, 5: torch.channels_last_3d}.get(made.dim())
    if last is None or made.is_contiguous() or not made.is_contiguous(memory_format=last):
        return torch.contiguous_format
    return last
