"""The script's traceback as Python would have shown it: without the frames of our wrappers."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import TracebackType

OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

# These stand in for calls of the script's. What they raise of the file system's or of torch's own
# errors, the call itself would have raised: its frame is not Python, and ours is then the last.
STAND_INS = tuple(
    os.path.join(OURS, "runtime", name)
    for name in ("patches.py", "script.py", "shield" + os.sep, "owned" + os.sep)
)

Noted = Callable[[type[BaseException], BaseException], None]


def install(note: Noted) -> None:
    """Replaces `sys.excepthook`. A script that installs its own still gets to."""
    show = sys.excepthook

    def hook(
        kind: type[BaseException], error: BaseException, traceback: TracebackType | None
    ) -> None:
        note(kind, error)
        if not is_ours(error):
            clean(error)
            traceback = without_ours(traceback)
        show(kind, error, traceback)

    sys.excepthook = hook


def is_ours(error: BaseException) -> bool:
    """Whether it was raised in our own code, and not merely passed through it."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None or not _is_ours(traceback):
        return False
    at = traceback.tb_frame.f_code.co_filename
    return not (isinstance(error, OSError | RuntimeError) and at.startswith(STAND_INS))


def clean(error: BaseException) -> None:
    """The exception and everything it was caused by."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        current = pending.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        current.__traceback__ = without_ours(current.__traceback__)
        pending += [current.__cause__, current.__context__]
        pending += getattr(current, "exceptions", ())


def without_ours(traceback: TracebackType | None) -> TracebackType | None:
    """Unlinks our frames in place; what is left is the script's own chain."""
    while traceback is not None and _is_ours(traceback):
        traceback = traceback.tb_next
    kept = traceback
    while kept is not None:
        following = kept.tb_next
        while following is not None and _is_ours(following):
            following = following.tb_next
        kept.tb_next = following
        kept = following
    return traceback


def _is_ours(traceback: TracebackType) -> bool:
    return traceback.tb_frame.f_code.co_filename.startswith(OURS)
