"""Replacing attributes of torch's classes so that calls pass a seam, and putting them back."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

from hotloop.seams import Seam

_ABSENT = object()


def through(seam: Seam, original: Callable[..., Any]) -> Callable[..., Any]:
    """`original`, with the seam's listeners called before and after it."""
    before, after = seam.before, seam.after

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        for tell in before:
            tell(args, kwargs)
        began = perf_counter_ns()
        try:
            result = original(*args, **kwargs)
        except BaseException:
            for tell_after in after:
                # What a listener makes of a call that failed must not hide how it failed.
                with contextlib.suppress(Exception):
                    tell_after(args, None, began)
            raise
        for tell_after in after:
            tell_after(args, result, began)
        return result

    return call


class Patches:
    """Attributes that were replaced, so that all of them can be restored, last first."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        own = vars(owner).get(name, _ABSENT)

        def restore() -> None:
            if own is _ABSENT:
                delattr(owner, name)  # it was inherited
            else:
                setattr(owner, name, own)

        setattr(owner, name, value)
        self._undo.append(restore)

    def route(self, owner: Any, name: str, seam: Seam) -> None:
        """Sends calls of `owner.name` through the seam, if anybody listens there."""
        if seam.is_used:
            self.replace(owner, name, through(seam, getattr(owner, name)))

    def on_restore(self, action: Callable[[], None]) -> None:
        self._undo.append(action)

    def restore(self) -> None:
        while self._undo:
            self._undo.pop()()
