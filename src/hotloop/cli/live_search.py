"""What is shown while a search runs: the trials so far, the one that runs, and the time left."""

from __future__ import annotations

import sys
import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from hotloop import units
from hotloop.cli import signals
from hotloop.cli.live import gpu_words
from hotloop.machine import GpuWatch
from hotloop.report.outlook_rows import outlook_rows
from hotloop.report.trial_rows import Telling, TrialRow
from hotloop.trial.order import Glimpse
from hotloop.trial.terminal import harmless

if TYPE_CHECKING:
    from hotloop.plan import Plan
    from hotloop.study import Options, Study
    from hotloop.trial.trial import Trial
    from hotloop.workshop.watching import Outlook

EVERY_SECONDS = 0.5
LINES = 12
COLOURS = {"kept": "green", "refused": "yellow", "": ""}


class LiveSearch:
    """A table that renews itself on a terminal; elsewhere one line a trial."""

    def __init__(
        self,
        name: str,
        options: Options,
        received: list[int],
        quiet: bool = False,
        show_output: bool = False,
        says_outlook: bool = True,
    ) -> None:
        self._name = name
        self._budget = options.budget
        self._heeded = signals.heeded(received, self._look)
        self._quiet = quiet
        self._show_output = show_output
        self._says_outlook = says_outlook
        self._telling = Telling(options.objective)
        self._told = 0
        self._last: deque[TrialRow] = deque(maxlen=LINES)
        self._running = ""
        self._spent = 0.0
        self._began = time.monotonic()
        self._outlook: Outlook | None = None
        self._shown = 0.0
        self._gpu: GpuWatch | None = None
        self._live: Any = None

    @property
    def outlook(self) -> Outlook | None:
        return self._outlook

    def __enter__(self) -> Self:
        # What the script prints and a table that moves the cursor would spoil each other.
        if sys.stderr.isatty() and not self._quiet and not self._show_output:
            from rich.console import Console
            from rich.live import Live

            self._gpu = GpuWatch()
            self._live = Live(console=Console(stderr=True), auto_refresh=False)
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.update(self._table(), refresh=True)
            self._live.stop()

    def planned(self, study: Study, outlook: Outlook) -> None:
        self._outlook = outlook
        self._catch_up(study)
        if self._quiet or not self._says_outlook:
            return
        from rich.console import Console

        from hotloop.report.search_console import show_outlook

        # In a notebook rich would show each line as a picture of its own.
        console = self._live.console if self._live else Console(stderr=True, force_jupyter=False)
        rows = outlook_rows(study, outlook)
        show_outlook(console, self._name, rows, in_full=False)

    def began(self, number: int, purpose: str, plan: Plan) -> None:
        self._running = f"{number:>3}  {self._telling.words(purpose, plan)}"
        self._shown = 0.0

    def glimpsed(self, glimpse: Glimpse) -> None:
        self._heeded(glimpse)

    def ended(self, trial: Trial, study: Study) -> None:
        self._running = ""
        self._catch_up(study)
        if self._live is not None:
            self._live.update(self._table(), refresh=True)

    def _catch_up(self, study: Study) -> None:
        """A search that is resumed begins with the trials it already has."""
        for trial in study.trials[self._told :]:
            row = self._telling.tell(trial)
            self._last.append(row)
            if self._live is None and not self._quiet:
                sys.stderr.write(f"hotloop: {harmless(line(row))}\n")
        self._told = len(study.trials)
        self._spent = sum(trial.cost for trial in study.trials)

    def _look(self, glimpse: Glimpse) -> None:
        if self._show_output and glimpse.printed:
            sys.stderr.buffer.write(glimpse.printed)
            sys.stderr.flush()
        now = time.monotonic()
        if self._live is not None and now - self._shown >= EVERY_SECONDS:
            self._shown = now
            self._live.update(self._screen(glimpse), refresh=True)

    def _screen(self, glimpse: Glimpse) -> Any:
        from rich.console import Group

        stage = f"step {glimpse.steps}" if glimpse.steps else "starting"
        state = self._gpu.look() if self._gpu else None
        parts = [self._running, stage, units.seconds(glimpse.seconds), *gpu_words(state)]
        # By the clock, as the budget is; trials that are replayed took theirs before.
        passed = max(self._spent + glimpse.seconds, time.monotonic() - self._began)
        spent = time_words(passed, self._budget, self._outlook)
        return Group(
            self._table(),
            _one_line("   ".join(parts)),
            _one_line(spent, "bright_black"),
        )

    def _table(self) -> Any:
        from rich.table import Table

        table = Table(box=None, show_header=False, padding=(0, 1), pad_edge=False)
        for width in (3, None, 9, 6, None):
            # A narrow terminal is to cut words and not figures: rich shrinks what may be wrapped.
            table.add_column(
                justify="right" if width else "left", min_width=width, no_wrap=width is not None
            )
        for row in self._last:
            ending = _one_line(row.ending, COLOURS.get(row.outcome, "red"))
            table.add_row(str(row.number), _one_line(row.words), row.value, row.ratio, ending)
        return table


def _one_line(text: str, style: str = "") -> Any:
    from rich.text import Text

    return Text(harmless(text), style, no_wrap=True, overflow="ellipsis")


def line(row: TrialRow) -> str:
    parts = (f"run {row.number}", row.words, row.value, row.ratio, row.ending)
    return "  ".join(part for part in parts if part)


def time_words(spent: float, budget: float | None, outlook: Outlook | None) -> str:
    gone = f"{units.seconds(spent)} gone"
    if budget is not None:
        return f"{gone}, {units.seconds(max(0.0, budget - spent))} of the budget left"
    if outlook is not None:
        low, high = outlook.seconds
        return f"{gone} of {units.seconds(low)} to {units.seconds(high)}"
    return gone
