"""Items are drawn by processes that are forked off a job, with all that it has."""

from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

from hotloop.levers.caching.filling import Limits, fill


class Left:
    """Garbage that nobody has found yet: a loader's iterator, say, which ends its workers."""

    def __init__(self, ends: Path) -> None:
        self.itself, self.ends = self, ends

    def __del__(self) -> None:
        with self.ends.open("a", encoding="utf-8") as file:
            file.write(f"{os.getpid()}\n")


class Finding:
    """A dataset that has Python look for garbage."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, number: int) -> int:
        gc.collect()
        return number


def test_what_the_job_has_left_is_not_cleared_away_by_who_draws(torch: Any, tmp_path: Path) -> None:
    gc.disable()
    try:
        Left(tmp_path / "ends")
        filled = fill(torch, Finding(), Limits(seconds=60, bytes=2**30, workers=0))
        assert len(filled.shelf) == 4
        gc.collect()
    finally:
        gc.enable()
    assert (tmp_path / "ends").read_text(encoding="utf-8") == f"{os.getpid()}\n"
