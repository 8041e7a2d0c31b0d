"""What is shown while a trial runs: how far it is, and how the machine is doing."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hotloop import units
from hotloop.machine import GpuState, GpuWatch
from hotloop.trial.order import Glimpse
from hotloop.trial.terminal import harmless

if TYPE_CHECKING:
    from hotloop.job import ScriptJob
    from hotloop.trial.spec import StopRule

EVERY_SECONDS = 0.5


class Live:
    """A line that renews itself on a terminal; elsewhere only a first line, and no more."""

    def __init__(
        self, job: ScriptJob, stop: StopRule, show_output: bool, quiet: bool = False
    ) -> None:
        self._job = job
        self._wanted = stop.warm_up + (stop.steps or stop.min_steps)
        self._show_output = show_output
        self._quiet = quiet
        self._status: Any = None
        self._gpu: GpuWatch | None = None
        self._shown = 0.0
        self._last_words = ""
        self._doing = ""

    def say(self, doing: str) -> None:
        """What is being done from now on; at first it is timed."""
        self._doing = doing
        if self._quiet:
            return
        if self._status is None:
            sys.stderr.write(f"hotloop: {doing} …\n")
        else:
            self._status.update(f"{doing} …")

    def __enter__(self) -> Self:
        if self._quiet:
            return self
        # What the script prints and a line that moves the cursor would spoil each other.
        if sys.stderr.isatty() and not self._show_output:
            from rich.console import Console

            self._gpu = GpuWatch()
            self._status = Console(stderr=True).status("", spinner="dots")
            self._status.start()
        else:
            sys.stderr.write(f"hotloop: measuring {harmless(self._job.shown)} …\n")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._status is not None:
            self._status.stop()

    def __call__(self, glimpse: Glimpse) -> None:
        if self._show_output and glimpse.printed:
            sys.stderr.buffer.write(glimpse.printed)
            sys.stderr.flush()
        elif glimpse.printed.strip():
            text = harmless(glimpse.printed.decode("utf-8", "replace"))
            self._last_words = text.strip().splitlines()[-1] if text.strip() else ""
        now = time.monotonic()
        if self._status is not None and now - self._shown >= EVERY_SECONDS:
            self._shown = now
            self._renew(glimpse)

    def _renew(self, glimpse: Glimpse) -> None:
        from rich.text import Text

        state = self._gpu.look() if self._gpu else None
        stage = _stage(glimpse, self._wanted)
        stage = f"{self._doing}, {stage}" if self._doing else stage
        parts = [stage, units.seconds(glimpse.seconds)]
        if glimpse.host_bytes:
            parts.append(f"host {units.size(glimpse.host_bytes)}")
        parts += gpu_words(state)
        line = Text("   ".join(parts))
        if self._last_words:
            line.append(f"\n  {self._last_words[:100]}", style="bright_black")
        self._status.update(line)


def gpu_words(state: GpuState | None) -> list[str]:
    if state is None:
        return []
    words = []
    if state.utilisation is not None:
        words.append(f"GPU {state.utilisation}% busy")
    if state.memory_used is not None:
        words.append(units.size(state.memory_used))
    if state.temperature is not None:
        words.append(f"{state.temperature} °C")
    if state.power_watts is not None:
        words.append(f"{state.power_watts:.0f} W")
    return words


def _stage(glimpse: Glimpse, wanted: int) -> str:
    if not glimpse.steps:
        return "starting"
    return f"step {glimpse.steps}" + (f" of about {wanted}" if glimpse.steps <= wanted else "")
