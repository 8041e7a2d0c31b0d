"""Models that training comes to only later: a discriminator that joins in after some epochs.

An optimizer already has their weights. Looking for their modules among all objects takes a moment,
once, and only where somebody asks who else may be called.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any


def awaited(torch: Any, optimizers: Iterable[Any], roots: Iterable[Any]) -> list[Any]:
    """Modules with weights that an optimizer has, and no root: the outermost that can be called."""
    covered = {id(weight) for root in roots for weight in root.parameters()}
    groups = (group for optimizer in optimizers for group in optimizer.param_groups)
    missing = {id(weight) for group in groups for weight in group["params"]} - covered
    if not missing:
        return []
    module = torch.nn.Module
    found = []
    for one in gc.get_objects():
        # Asking the object itself could wake up a lazy proxy.
        if issubclass(type(one), module) and type(one).forward is not module.forward:
            weights = {id(weight) for weight in one.parameters()}
            if weights & missing and not weights & covered:
                found.append(one)
    inner = {id(part) for one in found for part in one.modules() if part is not one}
    return [one for one in found if id(one) not in inner]
