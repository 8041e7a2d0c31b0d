"""The one screen that `hotloop profile` ends with."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from hotloop.measurement import Software
from hotloop.report import screen
from hotloop.report.diagnosis_console import show_diagnosis
from hotloop.report.diagnosis_rows import DiagnosisRows
from hotloop.report.profile_rows import PhaseRow, ProfileRows
from hotloop.timeline import Phase
from hotloop.trial.terminal import harmless

LABEL = 11
COLOURS = {
    Phase.DATA: "yellow",
    Phase.COPY: "magenta",
    Phase.FORWARD: "green",
    Phase.BACKWARD: "blue",
    Phase.OPTIMIZER: "cyan",
    Phase.REST: "bright_black",
}
# Told apart without colour too.
FILLS = {
    Phase.DATA: "█",
    Phase.COPY: "▓",
    Phase.FORWARD: "▒",
    Phase.BACKWARD: "▚",
    Phase.OPTIMIZER: "░",
    Phase.REST: "·",
}


def show_profile(
    console: Console,
    name: str,
    software: Software,
    found: ProfileRows,
    study: str,
    following: str,
    diagnosis: DiagnosisRows | None = None,
) -> None:
    """Everything is printed as literal text: nothing a script says is markup or an escape."""
    screen.line(console)
    screen.flow(console, [Text(harmless(name), "bold"), _where(software)], 2)
    screen.line(console)
    screen.flow(console, found.headline, 2, "bold green")
    screen.flow(console, ["a step  " + found.step[0], *found.step[1:]], 2)
    screen.line(console)
    _bar(console, "where a step's time goes", found.phases)
    if found.gpu_phases:
        _bar(console, "on the GPU's own clock", found.gpu_phases)
    if diagnosis is not None:
        show_diagnosis(console, diagnosis)
    measured = diagnosis.numbers if diagnosis is not None else ()
    screen.facts(console, (*measured, *found.facts, *_already(found)), LABEL)
    screen.line(console)
    _whole(console, "study", study)
    _whole(console, "next", following, "bold")


def _where(software: Software) -> str:
    device = "CPU" if software.device == "cpu" else software.device
    return f"{device} · torch {software.torch} · Python {software.python}"


def _already(found: ProfileRows) -> list[tuple[str, str]]:
    return [("does well", ", ".join(found.already))] if found.already else []


def _bar(console: Console, title: str, phases: tuple[PhaseRow, ...]) -> None:
    screen.line(console, Text(f"  {title}"))
    width = screen.width(console) - 4
    bar = Text("  ")
    for row, cells in zip(phases, cells_of([row.share for row in phases], width), strict=True):
        phase = Phase(row.phase)
        bar.append(FILLS[phase] * cells, style=COLOURS[phase])
    screen.line(console, bar)
    for row in phases:
        phase = Phase(row.phase)
        line = Text.assemble("  ", (FILLS[phase], COLOURS[phase]), f" {row.name:<18} {row.text}")
        screen.line(console, line)
    screen.line(console)


def cells_of(shares: list[float], width: int) -> list[int]:
    """Whole cells that add up to the width: what rounding takes from one goes to the next."""
    total = sum(shares) or 1.0
    cells, used, passed = [], 0, 0.0
    for share in shares:
        passed += share
        upto = round(passed / max(total, 1.0) * width)
        cells.append(upto - used)
        used = upto
    return cells


def _whole(console: Console, label: str, text: str, style: str = "") -> None:
    """Never folded, so that it can be copied."""
    shown = Text.assemble((f"  {label:<{LABEL}}", screen.SOFT), (harmless(text), style))
    screen.line(console, shown)
