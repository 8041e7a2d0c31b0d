"""Smaller batches than a script's own, on which a job can be looked at that runs out of memory."""

from __future__ import annotations

from typing import Any

from hotloop.seams import Seams


def smaller_batches(seams: Seams, divisor: int) -> None:
    """Of every loader that is built with a size of its own. One that is given batches is let be."""
    if divisor == 1:
        return

    def build(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        size = kwargs.get("batch_size")
        if isinstance(size, int):
            kwargs["batch_size"] = max(1, size // divisor)

    seams.loader_built.before.append(build)
