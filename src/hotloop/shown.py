"""A study that shows itself: what `hotloop.optimize` and `hotloop.profile` hand back in Python."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hotloop.figures import figures
from hotloop.plan import Plan
from hotloop.report import diagnosis_rows, notebook, profile_rows, search_rows
from hotloop.study import Study

WIDTH = 100


@dataclass(frozen=True)
class Shown:
    study: Study
    folder: Path
    """Where it is kept, with its report."""
    plan_file: Path | None = None

    @property
    def plan(self) -> Plan | None:
        """What was proven faster and shown to do the same training. None: nothing was."""
        return self.study.found.plan if self.study.found else None

    @property
    def verdict(self) -> str:
        """One sentence."""
        if self.study.found is not None:
            return search_rows.rows(self.study).headline
        if self.study.diagnosis is not None:
            return self.study.diagnosis.verdict
        return ", ".join(self._profile_rows().headline)

    def __repr__(self) -> str:
        return f"<hotloop {self.study.command} of {self.study.job.shown}: {self.verdict}>"

    def __str__(self) -> str:
        """The screen that the command ends with."""
        from rich.console import Console

        text = io.StringIO()
        # In a notebook rich would otherwise show it there, and hand back nothing.
        self._show(Console(file=text, width=WIDTH, force_jupyter=False))
        return text.getvalue()

    def _repr_html_(self) -> str:
        """For a notebook."""
        name, left = self.study.job.shown, self._left()
        if self.study.found is not None:
            return notebook.search(name, search_rows.rows(self.study), left)
        return notebook.profile(name, self._profile_rows(), self._diagnosis_rows(), left)

    def _show(self, console: Any) -> None:
        from hotloop.report.console import show_profile
        from hotloop.report.search_console import show_search

        name, left = self.study.job.shown, self._left()
        if self.study.found is not None:
            show_search(console, name, search_rows.rows(self.study), left, ())
            return
        software = self.study.trials[0].measurement.software  # type: ignore[union-attr]
        rows, found = self._profile_rows(), self._diagnosis_rows()
        show_profile(console, name, software, rows, str(self.folder), "hotloop.optimize", found)

    def _profile_rows(self) -> profile_rows.ProfileRows:
        trial = self.study.trials[0]
        assert trial.measurement is not None  # without one an error was raised
        found = figures(trial.measurement)
        assert found is not None
        return profile_rows.rows(trial.measurement, found, trial.shielding, trial.receipts)

    def _diagnosis_rows(self) -> diagnosis_rows.DiagnosisRows | None:
        diagnosis, measured = self.study.diagnosis, self.study.trials[0].measurement
        if diagnosis is None or measured is None:
            return None
        on_gpu = measured.software.device != "cpu"
        return diagnosis_rows.rows(diagnosis, self.study.job.cwd, on_gpu)

    def _left(self) -> list[tuple[str, str]]:
        plan = [("plan", str(self.plan_file))] if self.plan_file else []
        return [*plan, ("study", str(self.folder / "study.json"))]
