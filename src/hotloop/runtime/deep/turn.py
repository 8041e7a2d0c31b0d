"""One profiler at work for some steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from hotloop.depth import DepthReport
from hotloop.runtime.patches import Patches
from hotloop.runtime.watching import Watch
from hotloop.trial.spec import Deep


class Turn:
    """Begun and ended between two steps. What goes wrong in it takes away its tables alone."""

    what: ClassVar[str]
    """For a sentence: "No {what}: …"."""

    def __init__(self, torch: Any, watch: Watch, deep: Deep, patches: Patches) -> None:
        self._torch = torch
        self._watch = watch
        self._deep = deep
        self._patches = patches
        self._folder = Path(deep.folder)

    @property
    def steps(self) -> int:
        return self._deep.steps

    @property
    def seconds(self) -> float:
        """It lasts at least this long, whatever the steps."""
        return 0.0

    def attach(self) -> None:
        """When torch has just been imported."""

    def applies(self) -> bool:
        """Asked when its turn has come."""
        return True

    def begin(self) -> None: ...

    def stepped(self) -> None:
        """After each of its steps."""

    def end(self, steps: int) -> None:
        """After `steps`, which are fewer than it asked for when the script or its time ends."""

    def told(self, report: DepthReport) -> DepthReport:
        """The report with what this turn has seen, if it came to its end."""
        return report
