"""A convolution in strides written as one without, over pixels folded into channels.

By strides of 2, four neighbouring pixels of 3 channels are one pixel of 12. A convolution over
those that takes every pixel sums the same products as one over the others that takes every second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from hotloop.levers.attention.nodes import dtype, example, given, is_node

FEW = 4
"""Channels. Tensor cores take them by eight, and of pictures most of what they take is padding."""
LEAST = 4
"""Pixels that become one."""
ALIGNED = 8
"""Channels that they want a multiple of: 16 bytes of 16-bit numbers."""


@dataclass(frozen=True)
class Fold:
    """One direction: what is added around the pixels and behind the weights, so that they fold."""

    stride: int
    pixels: tuple[int, int]
    """Before and behind. Less than none behind: those that no weight reaches are left out."""
    weights: int


def fold(size: int, kernel: int, stride: int, padding: int) -> Fold:
    taps = -(-kernel // stride)
    results = (size + 2 * padding - kernel) // stride + 1
    behind = stride * (results + taps - 1) - padding - size
    return Fold(stride, (padding, behind), stride * taps - kernel)


def is_worth_it(channels: int, kernel: Sequence[int], stride: Sequence[int]) -> bool:
    """Where pixels are left out, weights of nothing would take their place."""
    covers = all(size >= by for size, by in zip(kernel, stride, strict=True))
    return 1 <= channels <= FEW and prod(stride) >= LEAST and covers


def is_foldable(torch: Any, module: Any) -> bool:
    """A convolution of the kind, as modules have it."""
    kinds = {torch.nn.Conv2d: 2, torch.nn.Conv3d: 3}
    directions = next((kinds[kind] for kind in kinds if isinstance(module, kind)), None)
    if directions is None:
        return False
    # Scripts put plain numbers there.
    kernel, stride, dilation = (
        _in_each(value, directions)
        for value in (module.kernel_size, module.stride, module.dilation)
    )
    is_plain = module.groups == 1 and set(dilation) == {1}
    return is_plain and is_worth_it(module.in_channels, kernel, stride)


def folds(torch: Any, node: Any) -> tuple[Fold, ...] | str | None:
    """In each direction; or why not. None: it is no convolution over few channels."""
    directions = {torch.conv2d: 2, torch.conv3d: 3}.get(node.target)
    if node.op != "call_function" or directions is None:
        return None
    x, weight = (_known(given(node, place, name)) for place, name in enumerate(("input", "weight")))
    if x is None or weight is None or x.dim() != directions + 2:
        return None  # or of a single picture
    groups = given(node, 6, "groups", 1)
    channels, *kernel = weight.shape[1:]
    if not _are_known(channels, groups) or channels * groups > FEW:
        return None
    stride, dilation = (
        _in_each(given(node, place, name, 1), directions)
        for place, name in ((3, "stride"), (5, "dilation"))
    )
    if groups != 1 or dilation != (1,) * directions:
        return "it takes channels in groups, or pixels that lie apart"
    sizes = x.shape[2:]
    if not _are_known(*sizes, *kernel, *stride):
        return "its sizes change from call to call"
    if not is_worth_it(channels, kernel, stride):
        return "it takes every pixel, or leaves some out"
    around = given(node, 4, "padding", 0)
    padding = _in_each(0 if around == "valid" else around, directions)
    if not _are_known(*padding):
        return "its padding changes from call to call"
    return tuple(map(fold, sizes, kernel, stride, padding))


def _known(value: Any) -> Any:
    return example(value) if is_node(value) else None


def _are_known(*sizes: Any) -> bool:
    return all(type(size) is int for size in sizes)


def _in_each(value: Any, directions: int) -> tuple[Any, ...]:
    """As torch reads it: one number is for all."""
    every = tuple(value) if isinstance(value, list | tuple) else (value,)
    return every * directions if len(every) == 1 else every


def replace(torch: Any, graph: Any, node: Any, each: Sequence[Fold]) -> None:
    order = _order(torch, node)
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
        weights = folded(padded(weight, *((0, one.weights) for one in each)), False)
        if order is not None:
            weights = method("contiguous", weights, memory_format=order)
        made = graph.call_function(node.target, (pixels, weights, given(node, 2, "bias")))
    made.meta.update(node.meta)
    node.replace_all_uses_with(made)
    graph.erase_node(node)


def _order(torch: Any, node: Any) -> Any:
    """Of its result in memory, which that of folded pixels and weights decides. None: the plain."""
    made = example(node)
    order = torch.channels_last if made.dim() == 4 else torch.channels_last_3d
    # By its strides: where the batch may change, torch 2.11 knows of no other order than the plain.
    is_last = made.stride(1) == 1 and not made.is_contiguous()
    return order if is_last else None
