"""Which module an operator is queued in, and how often the same piece of a line queues the same."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable
from types import FrameType
from typing import Any

from hotloop.runtime.look.frames import Frames

FARTHEST = 40
"""Frames from the operator outwards."""


class Visits:
    def __init__(self, torch: Any, frames: Frames) -> None:
        self._module_type = torch.nn.Module
        self._frames = frames
        self._seen: dict[Hashable, Counter[tuple[int, int, str]]] = defaultdict(Counter)

    def note(self, line: Hashable, frame: FrameType | None, name: str) -> None:
        """A helper that fifty layers call is no loop: it is visited once for each."""
        owner, reached = 0, -1
        for _ in range(FARTHEST):
            if frame is None:
                break
            if reached < 0 and self._frames.is_users(frame.f_code.co_filename):
                reached = frame.f_lasti
            if (module := self._self(frame)) is not None:
                owner = owner or id(module)
            if owner and reached >= 0:
                break
            frame = frame.f_back
        self._seen[line][owner, reached, name] += 1

    def repeats(self, line: Hashable) -> int:
        return max(self._seen[line].values(), default=0)

    def module(self, frame: FrameType | None) -> Any:
        """From the user's innermost line inwards, if any."""
        while frame is not None:
            if (owner := self._self(frame)) is not None:
                return owner
            if self._frames.is_users(frame.f_code.co_filename):
                return None
            frame = frame.f_back
        return None

    def _self(self, frame: FrameType) -> Any:
        code = frame.f_code
        if code.co_argcount and code.co_varnames[0] == "self":
            owner = frame.f_locals.get("self")
            if isinstance(owner, self._module_type):
                return owner
        return None
