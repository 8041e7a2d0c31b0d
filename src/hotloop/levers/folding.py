"""A convolution in strides written as one without, over pixels folded into channels.

By strides of 2, four neighbouring pixels of 3 channels are one pixel of 12. A convolution over
those that takes every pixel sums the same products as one over the others that takes every second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from hotloop.levers.attention.nodes import dtype, example, given, is_node, name_of

FEW = 4
"""Channels. Tensor cores take them by eight, and of pictures most of what they take is padding."""
LEAST = 4
"""Pixels that become one."""
ALIGNED = 8
"""Channels that they want a multiple of: 16 bytes of 16-bit numbers."""
CONVOLUTIONS = {"conv2d": 2, "conv3d": 3}


@dataclass(frozen=True)
class Fold:
    """One direction: what is added around the pixels and the weights, so that they fold."""

    stride: int
    taps: int
    """Of the weights, once they are folded."""
    pixels: tuple[int, int]
    """Before and behind. Less than none behind: those that no weight reaches are left out."""
    weights: tuple[int, int]


def fold(size: int, kernel: int, stride: int, padding: int) -> Fold:
    reach = -(-padding // stride)
    front = stride * reach - padding
    taps = -(-(kernel + front) // stride)
    results = (size + 2 * padding - kernel) // stride + 1
    before = stride * reach
    behind = stride * (results + taps - 1) - before - size
    return Fold(stride, taps, (before, behind), (front, stride * taps - kernel - front))


def is_worth_it(channels: int, kernel: Sequence[int], stride: Sequence[int]) -> bool:
    """Where pixels are left out, weights of nothing would take their place."""
    covers = all(size >= by for size, by in zip(kernel, stride, strict=True))
    return channels <= FEW and prod(stride) >= LEAST and covers


def is_foldable(torch: Any, module: Any) -> bool:
    """A convolution of the kind, as modules have it."""
    if not isinstance(module, torch.nn.Conv2d | torch.nn.Conv3d):
        return False
    is_plain = module.groups == 1 and set(module.dilation) == {1}
    return is_plain and is_worth_it(module.in_channels, module.kernel_size, module.stride)


def convolves(node: Any) -> bool:
    """Over few channels."""
    if node.op != "call_function" or name_of(node) not in CONVOLUTIONS:
        return False
    weight = given(node, 1, "weight")
    known = example(weight) if is_node(weight) else None
    return known is not None and known.dim() > 1 and known.shape[1] <= FEW


def folds(node: Any) -> tuple[Fold, ...] | str:
    """In each direction; or why not."""
    directions = CONVOLUTIONS[name_of(node)]
    x, weight = (example(given(node, place, name)) for place, name in ((0, "input"), (1, "weight")))
    if x is None or x.dim() != directions + 2:
        return "its sizes are not known"
    stride, dilation = (
        _in_each(given(node, place, name, 1), directions)
        for place, name in ((3, "stride"), (5, "dilation"))
    )
    if given(node, 6, "groups", 1) != 1 or dilation != (1,) * directions:
        return "it takes channels in groups, or pixels that lie apart"
    if not _are_known(*x.shape[2:], *weight.shape[1:], *stride):
        return "its sizes change from call to call"
    channels, *kernel = weight.shape[1:]
    if not is_worth_it(channels, kernel, stride):
        return "it takes every pixel, or leaves some out"
    around = given(node, 4, "padding", 0)
    padding = _in_each(0 if around == "valid" else around, directions)
    if not _are_known(*padding):
        return "its padding changes from call to call"
    return tuple(map(fold, x.shape[2:], kernel, stride, padding))


def _are_known(*sizes: Any) -> bool:
    return all(type(size) is int for size in sizes)


def _in_each(value: Any, directions: int) -> tuple[Any, ...]:
    """As torch reads it: one number is for all."""
    every = tuple(value) if isinstance(value, list | tuple) else (value,)
    return every * directions if len(every) == 1 else every


def replace(torch: Any, graph: Any, node: Any, each: Sequence[Fold], order: Any) -> None:
    """`order`: in which the folded pixels and weights lie, if it is not the plain one."""
    x, weight = given(node, 0, "input"), given(node, 1, "weight")
    directions = len(each)
    strides = tuple(one.stride for one in each)
    beside = -example(weight).shape[1] * prod(strides) % ALIGNED
    with graph.inserting_before(node):

        def method(name: str, *args: Any, **more: Any) -> Any:
            return graph.call_method(name, args, more)

        def padded(tensor: Any, *pairs: tuple[int, int]) -> Any:
            """By as much in each of the last dimensions."""
            if not any(map(any, pairs)):
                return tensor
            backwards = [number for pair in reversed(pairs) for number in pair]
            return graph.call_function(torch.nn.functional.pad, (tensor, backwards))

        def folded(tensor: Any, channels_behind: bool) -> Any:
            """The pixels that become one, behind the channels: of one of those, side by side."""
            for place in reversed(range(directions)):
                tensor = method("unflatten", tensor, 2 + place, (-1, strides[place]))
            outer = [2 + 2 * place for place in range(directions)]
            inner = [1, *(one + 1 for one in outer)]
            if channels_behind:
                tensor = method("permute", tensor, 0, *outer, *inner)
                tensor = method("flatten", tensor, directions + 1)
                return method("movedim", padded(tensor, (0, beside)), -1, 1)
            tensor = method("permute", tensor, 0, *inner, *outer)
            tensor = method("flatten", tensor, 1, directions + 1)
            return padded(tensor, (0, beside), *[(0, 0)] * directions)

        # Where autocast computes in fewer bits, fewer are copied.
        pixels = x if dtype(x) == dtype(node) else method("to", x, dtype(node))
        pixels = folded(padded(pixels, *(one.pixels for one in each)), order is not None)
        weights = folded(padded(weight, *(one.weights for one in each)), False)
        if order is not None:
            weights = method("contiguous", weights, memory_format=order)
        made = graph.call_function(node.target, (pixels, weights, given(node, 2, "bias")))
    made.meta.update(node.meta)
    node.replace_all_uses_with(made)
    graph.erase_node(node)
