"""Models that training comes to only later: a discriminator that joins in after some epochs.

An optimizer already has their weights. Looking for their modules among all objects takes a moment,
once, and only where somebody asks who else may be called.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable
from typing import Any


def awaited(torch: Any, optimizer: Any, roots: Iterable[Any]) -> list[Any] | None:
    """Modules that can be called and have weights of this optimizer, and none of any root's.

    None: it has no other weights than roots have, and nobody was looked for.
    """
    covered = {id(weight) for root in roots for weight in root.parameters()}
    groups = getattr(optimizer, "param_groups", ())  # it may not have come to be
    missing = {id(weight) for group in groups for weight in group["params"]} - covered
    if not missing:
        return None
    found = []
    for one in gc.get_objects():
        # Asking an object itself could wake up a lazy proxy; and what is a module in name alone,
        # or not yet, may fail in its own ways.
        if issubclass(type(one), torch.nn.Module):
            with contextlib.suppress(Exception):
                weights = {id(weight) for weight in one.parameters()}
                if weights & missing and not weights & covered and _can_be_called(torch, one):
                    found.append(one)
    return found


def _can_be_called(torch: Any, module: Any) -> bool:
    """A compiled module has its forward itself, others by their class."""
    return "forward" in vars(module) or type(module).forward is not torch.nn.Module.forward
