"""The repeated blocks of a model, found by their structure: a transformer's layers, say.

What is done to one of them can be done to all: compiled once for all of them, or recomputed on the
way back. Nothing here changes a model, and nothing imports torch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

LEAST = 3
"""Two alike may be so by chance: a network's two towers, an encoder and its decoder."""
CONTAINERS = ("ModuleList", "Sequential")
"""What models keep their blocks in, as torch names it. A subclass of these counts too."""


@dataclass(frozen=True, eq=False)
class BlockGroup:
    """Blocks that are made alike, in the order in which the model lists them."""

    kind: type
    names: tuple[str, ...]
    """Where each stands in the root: `transformer.h.0`."""
    blocks: tuple[Any, ...]
    """The modules themselves: a group that is kept keeps the model alive."""

    def __len__(self) -> int:
        return len(self.blocks)


def repeated_blocks(root: Any, least: int = LEAST) -> list[BlockGroup]:
    """Groups of at least `least` modules in `root` that are made alike, in the model's order.

    A block stands in a ModuleList or a Sequential and consists of other modules, with parameters
    somewhere among them: single layers are none, nor are lists of blocks, which are never called.
    Alike are two of the same class with the same submodules, and parameters and buffers of the same
    names, shapes, formats and devices, learning or not; plain attributes may differ (a dilation, a
    layer's number). Blocks of one group may stand in several containers. Groups do not overlap: of
    blocks inside blocks the outer ones are taken, a module that the model lists twice counts once,
    and the root itself is no block. Lazy modules without shapes are left out until they have some.
    """
    candidates = list(_candidates(root))
    counts = Counter(structure for _, _, structure in candidates)
    groups: dict[Hashable, list[tuple[str, Any]]] = {}
    taken: set[int] = set()
    for name, module, structure in candidates:  # the outer before the inner
        if counts[structure] >= least and id(module) not in taken:
            taken.update(id(part) for part in module.modules())
            groups.setdefault(structure, []).append((name, module))
    return [_group(found) for found in groups.values() if len(found) >= least]


def _group(found: list[tuple[str, Any]]) -> BlockGroup:
    names, blocks = zip(*found, strict=True)
    return BlockGroup(type(blocks[0]), names, blocks)


def _candidates(root: Any) -> Iterator[tuple[str, Any, Hashable]]:
    """What could be a block by itself, with its structure."""
    listed = {
        id(child)
        for module in root.modules()
        if _is_a(module, *CONTAINERS)
        for child in module.children()
    }
    for name, module in root.named_modules():
        if id(module) in listed and _is_composed(module):
            structure = _structure(module)
            if structure is not None:
                yield name, module, structure


def _is_composed(module: Any) -> bool:
    is_called = not _is_a(module, "ModuleList", "ModuleDict")
    return is_called and any(True for _ in module.children())


def _structure(module: Any) -> Hashable | None:
    """Equal for blocks that are made alike. None: without parameters, or not yet with shapes."""
    tensors = [*module.named_parameters(), *module.named_buffers()]
    if next(module.parameters(), None) is None or any(
        hasattr(t, "materialize") for _, t in tensors
    ):
        return None
    parts = tuple((name, type(part)) for name, part in module.named_modules())
    return parts, tuple(
        (name, tuple(t.shape), t.dtype, str(t.device), t.requires_grad) for name, t in tensors
    )


def _is_a(module: Any, *names: str) -> bool:
    """By name, so that torch need not be imported; a user's class of that name does not count."""
    return any(
        kind.__name__ in names and kind.__module__.startswith("torch.nn.")
        for kind in type(module).__mro__
    )
