"""The screens of a search: what it is going to do, and the one it ends with."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from hotloop import units
from hotloop.report import screen
from hotloop.report.console import COLOURS, FILLS, cells_of
from hotloop.report.outlook_rows import OutlookRows
from hotloop.report.refusal_rows import grouped
from hotloop.report.search_rows import SCREENED, LadderRow, PhaseChange, SearchRows
from hotloop.report.trial_rows import TrialRow
from hotloop.timeline import Phase
from hotloop.trial.terminal import harmless

Facts = Sequence[tuple[str, str]]

LEAST_BAR = 8
LEAST_NAME = 24
LEAST_ENDING = 24
LABEL = 13


def show_search(
    console: Console, name: str, found: SearchRows, left: Facts, commands: Facts, last: str = ""
) -> None:
    """`left`: what was written, and where. `last`: one line that is seen when all else is not."""
    _heading(console, name, found.headline, "bold green" if found.won else "bold yellow")
    if found.phases:
        _phases(console, found.phases, found.clock, found.phases_of)
    if found.ladder:
        _ladder(console, found.ladder, found.screened)
    if found.tried:
        _tried(console, found.tried)
    screen.facts(console, found.facts, LABEL)
    screen.line(console)
    screen.facts(console, left, LABEL)
    _commands(console, commands)
    if last:
        screen.line(console)
        screen.line(console, Text(f"  {harmless(last)}", style="bold"))


def show_outlook(
    console: Console, name: str, found: OutlookRows, commands: Facts = (), in_full: bool = True
) -> None:
    """`in_full`: whether it is all that the user asked for, and not the beginning of a search."""
    _heading(console, name, found.sentence, "bold")
    worth = [("could help", f"{lever}: {text}") for lever, text in found.worth]
    worth = worth or [("could help", "nothing that hotloop knows, by what was measured")]
    told = [*([("limited by", found.limit)] if found.limit else []), *worth]
    if in_full:
        told += [("not tried", f"{names}: {reason}") for names, reason in grouped(found.refused)]
    elif found.refused:
        names = units.some([lever for lever, _ in found.refused])
        told.append(("not tried", f"{names}: --dry-run and the report say why"))
    screen.facts(console, told, LABEL)
    _commands(console, commands)


def show_verdict(console: Console, name: str, same: bool, headline: str, facts: Facts) -> None:
    _heading(console, name, headline, "bold green" if same else "bold red")
    screen.facts(console, facts, LABEL)


def _heading(console: Console, name: str, sentence: str, style: str) -> None:
    screen.line(console)
    screen.line(console, Text(f"  {harmless(name)}", style="bold"))
    screen.line(console)
    for line in screen.wrapped(console, sentence, 2):
        screen.line(console, Text(f"  {line}", style=style))
    screen.line(console)


def _phases(console: Console, phases: tuple[PhaseChange, ...], clock: str, phases_of: str) -> None:
    """Both bars on one scale: what was won is what is missing."""
    before, after = sum(row.before for row in phases), sum(row.after for row in phases)
    longest = max(before, after) or 1.0
    title = [
        "where a step's time goes",
        *["before and after"] * bool(after),
        *[clock] * bool(clock),
    ]
    screen.line(console, Text(f"  {', '.join(title)}"))
    for said in screen.wrapped(console, phases_of, 2):
        screen.line(console, Text(f"  {said}", style="bright_black"))
    _bar(console, [(row.phase, row.before / longest) for row in phases])
    if after:
        _bar(console, [(row.phase, row.after / longest) for row in phases])
    for row in phases:
        phase = Phase(row.phase)
        mark = Text.assemble("  ", (FILLS[phase], COLOURS[phase]), f" {row.name:<18} {row.text}")
        screen.line(console, mark)
    screen.line(console)


def _bar(console: Console, shares: list[tuple[str, float]]) -> None:
    bar = Text("  ")
    cells = cells_of([share for _, share in shares], screen.width(console) - 4)
    for (phase, _), count in zip(shares, cells, strict=True):
        bar.append(FILLS[Phase(phase)] * count, style=COLOURS[Phase(phase)])
    screen.line(console, bar)


def _ladder(console: Console, ladder: tuple[LadderRow, ...], screened: bool) -> None:
    head = ("", "own gain", "a step", "an epoch", "memory")
    table = [head, *((row.name, row.gain, row.step, row.epoch, row.memory) for row in ladder)]
    lengths = [0.0, *(row.length for row in ladder)]
    columns = _that_fit([max(map(len, column)) for column in zip(*table, strict=True)], console)
    room = screen.width(console) - 2 - sum(width + 2 for _, width in columns)
    for cells, length in zip(table, lengths, strict=True):
        words = [f"{_cut(cells[at], width):<{width}}" for at, width in columns]
        line = Text("  " + "  ".join(words), style="" if length else "bright_black")
        if room >= LEAST_BAR:
            line.append("  " + "█" * round(length * room), style="green")
        line.rstrip()
        screen.line(console, line)
    if screened:
        screen.line(console, Text(f"  {SCREENED} from one process alone", style="bright_black"))
    screen.line(console)


def _that_fit(widths: list[int], console: Console) -> list[tuple[int, int]]:
    """Number and width of the columns there is room for. The report has them all."""
    room = screen.width(console) - 2
    least = [min(widths[0], LEAST_NAME), *widths[1:]]
    columns = list(range(len(widths)))
    for droppable in (3, 4, 1):  # an epoch, memory, the own gain
        if sum(least[at] + 2 for at in columns) <= room:
            break
        columns.remove(droppable)
    others = sum(widths[at] + 2 for at in columns[1:])
    return [(0, min(widths[0], room - others - 2)), *((at, widths[at]) for at in columns[1:])]


def _tried(console: Console, tried: tuple[TrialRow, ...]) -> None:
    width = min(max(len(row.words) for row in tried), 40)
    screen.line(console, Text("  what was tried"))
    for row in tried:
        words = f"  {_cut(harmless(row.words), width):<{width}}  {row.value:>9}  {row.ratio:>6}  "
        room = screen.width(console) - len(words)
        indent = len(words) if room >= LEAST_ENDING else 4
        endings = screen.wrapped(console, row.ending, indent)
        beside = endings.pop(0) if endings and indent == len(words) else ""
        screen.line(console, Text((words + beside).rstrip()))
        for ending in endings:
            screen.line(console, Text(" " * indent + ending))
    screen.line(console)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _commands(console: Console, commands: Facts) -> None:
    """On lines of their own and never folded, so that they can be copied."""
    if commands:
        screen.line(console)
    for what, command in commands:
        screen.line(console, Text(f"  {what}:", style="bright_black"))
        screen.line(console, Text(f"    {harmless(command)}", style="bold"))
