"""Where a script hangs, read from the stack that its process has written, and what it waits for."""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from hotloop.inspection import PACKAGES, Frame

_FRAME = re.compile(r'  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)')
_INDENT = "    "
"""In front of a line of source, as in Python's own tracebacks."""
_READS_INPUT = re.compile(r"(?<![\w.])input\(|\bstdin\b")
_ASKS_FOR_INPUT = ("/getpass.py",)
"""It reads a terminal that it has opened itself."""
_ENDS_OWN_WORKERS = ("multiprocessing/pool.py", "torch/utils/data/dataloader.py")
"""They join processes too, in which nobody trains."""
_LAUNCHES = (
    "torch/distributed/run.py",
    "torch/distributed/launcher/api.py",
    "torch/distributed/elastic/agent/",
)
"""Not the whole of elastic: its `record` stands around the main function of what it launches."""


def of_the_script(path: Path) -> str:
    """Without the frames of our wrappers, which are nobody's reason to hang; with lines of source,
    since a function written in C, such as `input`, has no frame of its own."""
    ours = str(Path(__file__).parents[1]) + os.sep
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(_with_source(line) for line in lines if ours not in line)


def of_main_thread(stack: str) -> list[Frame]:
    """The innermost first. That thread stands last."""
    return next(iter(reversed(list(_threads(stack)))), [])


def users_own(stack: str, home: str) -> Frame | None:
    """What the main thread was at, in the code below `home` if it was called from there at all."""
    frames = of_main_thread(stack)
    own = (frame for frame in frames if _is_below(frame.file, home))
    return next(own, frames[0] if frames else None)


def _is_below(file: str, home: str) -> bool:
    below = file.startswith(os.path.join(home, ""))
    return below and not any(packages in Path(file).parts for packages in PACKAGES)


def waits_for_input(stack: str) -> bool:
    frames = of_main_thread(stack)
    if not frames:
        return False
    reads = _READS_INPUT.search(frames[0].source)
    return bool(reads) or frames[0].file.endswith(_ASKS_FOR_INPUT)


def waits_for_children(stack: str) -> bool:
    return any(
        _joins(frame, frames[place + 1 :]) or _launches(frame)
        for frames in _threads(stack)
        for place, frame in enumerate(frames)
    )


def waits_for_spawned(stack: str) -> bool:
    """By torch.multiprocessing, which is for nothing but several that work together."""
    return any(
        frame.file.endswith("torch/multiprocessing/spawn.py") and frame.function == "join"
        for frames in _threads(stack)
        for frame in frames
    )


def _joins(frame: Frame, callers: list[Frame]) -> bool:
    if callers and callers[0].file.endswith(_ENDS_OWN_WORKERS):
        return False
    joins = frame.file.endswith(("multiprocessing/process.py", "multiprocessing/spawn.py"))
    return joins and frame.function == "join"


def _launches(frame: Frame) -> bool:
    return any(part in frame.file for part in _LAUNCHES)


def _threads(stack: str) -> Iterator[list[Frame]]:
    """The frames of each, innermost first."""
    frames: list[Frame] = []
    for line in stack.splitlines():
        if found := _FRAME.fullmatch(line):
            frames.append(Frame(found["file"], int(found["line"]), found["function"]))
        elif frames and line.startswith(_INDENT):
            frames[-1] = replace(frames[-1], source=line.strip())
        elif frames:
            yield frames
            frames = []
    if frames:
        yield frames


def _with_source(line: str) -> str:
    found = _FRAME.fullmatch(line)
    if found is None:
        return line
    linecache.checkcache(found["file"])  # between two trials it may be edited
    source = linecache.getline(found["file"], int(found["line"])).strip()
    return f"{line}\n{_INDENT}{source}" if source else line
