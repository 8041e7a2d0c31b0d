"""Noticing early that a trial will never come to a step, however long it is left."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from hotloop import processes
from hotloop.trial import stacks
from hotloop.trial.spec import ASK

QUIET_SECONDS = 20.0
"""Without a step. Only then is anything asked at all."""
CHILDREN_SECONDS = 30.0
WINDOW_SECONDS = 5.0
"""Over which it is looked at who computes."""
IDLE, BUSY = 0.1, 0.5
"""Cores. Who waits uses hardly any; a training uses one at least for the most part."""
ANSWER_SECONDS = 1.0
GROUP = ("RANK", "WORLD_SIZE")
"""What a launcher tells each process of a group in its environment."""


@dataclass(frozen=True)
class _Seen:
    at: float
    own: float
    childrens: float


class Stuck:
    """Looks at a trial once a second."""

    def __init__(self, pid: int, asked: Path, nobody_types: bool) -> None:
        """`asked`: where the process writes its stack when it gets the signal for it.
        `nobody_types`: its stdin is a terminal of ours, on which nothing will ever come."""
        self._pid = pid
        self._asked = asked
        self._nobody_types = nobody_types
        self._steps = 0
        self._stepped = 0.0
        self._ask_after = QUIET_SECONDS
        self._seen: deque[_Seen] = deque()
        self.stack = ""
        """Where it was when it was given up."""

    def quiet_for(self, seconds: float, steps: int) -> float | None:
        """`seconds` since it began. For how long there has been no step, if there will be none."""
        if steps != self._steps:
            self._steps, self._stepped = steps, seconds
            self._seen.clear()
        quiet = seconds - self._stepped
        if quiet < QUIET_SECONDS - WINDOW_SECONDS or ASK is None:
            return None
        own, childrens = self._cores(seconds)
        if own is None or own > IDLE or quiet < QUIET_SECONDS or seconds < self._ask_after:
            return None
        # A signal may disturb what the script waits in: not more often than it helps.
        self._ask_after = seconds + max(CHILDREN_SECONDS - QUIET_SECONDS, seconds / 2)
        stack = self._ask()
        if self._is_for_good(stack, seconds, childrens):
            self.stack = stack
            return quiet
        return None

    def _is_for_good(self, stack: str, seconds: float, childrens: float) -> bool:
        if self._nobody_types and stacks.waits_for_input(stack):
            return True
        if self._steps or seconds < CHILDREN_SECONDS or childrens < BUSY:
            return False
        if stacks.waits_for_spawned(stack):
            return True
        # Others may be joined before the training, such as those that prepare its data.
        return stacks.waits_for_children(stack) and self._has_group()

    def _cores(self, seconds: float) -> tuple[float | None, float]:
        """That it uses itself, and that its children do. None: not known yet, or nowhere said."""
        own = processes.cpu_seconds(self._pid)
        if own is None:
            return None, 0.0
        childrens = sum(
            processes.cpu_seconds(pid) or 0.0 for pid in processes.descendants(self._pid) or ()
        )
        self._seen.append(_Seen(seconds, own, childrens))
        while len(self._seen) > 1 and seconds - self._seen[1].at >= WINDOW_SECONDS:
            self._seen.popleft()
        first = self._seen[0]
        if (passed := seconds - first.at) < WINDOW_SECONDS:
            return None, 0.0
        return (own - first.own) / passed, (childrens - first.childrens) / passed

    def _ask(self) -> str:
        """Its main thread alone, which does so itself: nothing moves on while it is written."""
        if ASK is None or not _catches(self._pid, ASK):
            return ""  # it would die of it: it has become another program, or is about to
        try:
            os.truncate(self._asked, 0)
            os.kill(self._pid, ASK)
        except OSError:
            return ""
        deadline = time.monotonic() + ANSWER_SECONDS
        while not self._asked.stat().st_size and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(0.1)  # it is written line by line
        return stacks.of_the_script(self._asked)

    def _has_group(self) -> bool:
        """Told to the children, and not already to the job, which may itself be one of a group."""
        own = _environment(self._pid)
        for pid in processes.descendants(self._pid) or ():
            theirs = _environment(pid)
            if all(name in theirs for name in GROUP) and any(
                theirs[name] != own.get(name) for name in GROUP
            ):
                return True
        return False


def _catches(pid: int, number: int) -> bool:
    with contextlib.suppress(OSError, ValueError):
        for line in (
            Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
        ):
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def _environment(pid: int) -> dict[str, str]:
    try:
        text = Path(f"/proc/{pid}/environ").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = (one.partition("=") for one in text.split("\0"))
    return {name: value for name, _, value in pairs}
