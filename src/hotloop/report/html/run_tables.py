"""The sections that are tables: every run, what was refused, and what an epoch costs."""

from __future__ import annotations

from markupsafe import Markup

from hotloop import units
from hotloop.report.energy_rows import STEPS, Cost, Prices
from hotloop.report.every_trial import TrialDetail, interval_words
from hotloop.report.html.blocks import Block, Listed, Logged, Said, Section, Tabled
from hotloop.report.html.figure import Cell, DataTable, Number
from hotloop.report.html.strips import spread
from hotloop.report.page import Page
from hotloop.report.refusal_rows import untried, why

RUNS = ("run", "what", "a step", "ratio", "state", "took", "memory")
ABOUT_RUNS = (
    "Each is a fresh process. The line shows between which times nine in ten of its steps lie, and "
    "the dot their mean: one process alone says little of the next."
)
ABOUT_DEPTH = "Every profiler slows down what it watches: compare these times with each other only."
GPU_ALONE = "Energy is that of the GPU alone, by its own counter. CO₂ is an estimate."
NO_PRICE = (
    "Neither energy nor money is known: no GPU told what it draws, and no price was given. "
    "hotloop report --price-hour N tells what the machine costs for an epoch."
)
GIVEN = "Prices are what was given on the command line."


def runs_section(page: Page) -> Section:
    if not page.trials:
        return Section("runs", "Every run", ())
    longest = max((one.step.high for one in page.trials if one.step), default=0.0)
    table = Tabled(
        key="runs",
        caption="Every run",
        table=DataTable(RUNS, tuple(_run(one) for one in page.trials)),
        drawings=tuple(_drawing(one, longest) for one in page.trials),
        drawn_head="nine in ten steps",
        links=tuple(f"run-{one.number}" for one in page.trials),
        failed=frozenset(at for at, one in enumerate(page.trials) if one.failed),
    )
    count = "1 run" if len(page.trials) == 1 else f"{len(page.trials)} runs"
    about = f"{count}{', in a table that scrolls' if table.table.is_long else ''}. {ABOUT_RUNS}"
    return Section("runs", "Every run", (Said(about), table, Logged(page.trials)))


def refused_section(page: Page) -> Section:
    tried = [one for one in page.refused if one.tried]
    left = untried(page.refused)
    blocks: list[Block] = []
    if tried:
        rows: list[tuple[Cell, ...]] = [
            (one.lever, why(one), Number(units.seconds(one.cost) if one.cost else "–", one.cost))
            for one in tried
        ]
        head = ("optimisation", "why not", "trying took")
        blocks.append(Tabled("refused", "Tried and refused", DataTable(head, tuple(rows))))
    if left:
        blocks.append(Tabled("untried", "Not tried", DataTable(("optimisation", "why not"), left)))
    return Section("refused", "What was refused", tuple(blocks))


def cost_section(page: Page) -> Section:
    if not page.costs:
        said = (Said(NO_PRICE),) if page.steps.breakdowns else ()
        return Section("costs", "What it costs", said)
    head = ("", *(one.label for one in page.costs))
    rows: list[tuple[Cell, ...]] = [
        (label, *cells)
        for label, cells in _cost_rows(page.costs, page.prices)
        if any(cell.value is not None for cell in cells)
    ]
    table = Tabled("costs", "What it costs", DataTable(head, tuple(rows)))
    drawn = any(one.joules_step is not None for one in page.costs)
    return Section("costs", "What it costs", (table, Said(GPU_ALONE if drawn else GIVEN)))


def depth_section(page: Page) -> Section:
    """What a profiler saw. Its times are to be compared with each other only."""
    blocks: list[Block] = []
    for kind, found in page.depths:
        for number, table in enumerate(found.tables, start=1):
            made = DataTable(table.head, tuple(_depth_row(row, table.left) for row in table.rows))
            blocks.append(Tabled(f"depth-{kind}-{number}", table.title, made))
        notes = (*found.facts, *(("note", problem) for problem in found.problems))
        files = tuple(("opened by", how) for how in found.files)
        blocks += [Listed((*notes, *files))] if notes or files else []
    lead: tuple[Block, ...] = (Said(ABOUT_DEPTH),) if blocks else ()
    return Section("depth", "Under a profiler", (*lead, *blocks))


def _depth_row(row: tuple[str, ...], words: int) -> tuple[Cell, ...]:
    """Figures first, in the order of what they cost, and words at the end."""
    figures = len(row) - words
    return (*(Number(text, None) for text in row[:figures]), *row[figures:])


def _drawing(one: TrialDetail, longest: float) -> tuple[Markup, str] | None:
    return (spread(one.step, longest), interval_words(one.step)) if one.step else None


def _run(one: TrialDetail) -> tuple[Cell, ...]:
    step = one.step
    ending = f"{one.state}, {one.outcome}" if one.outcome and not one.failed else one.state
    return (
        Number(str(one.number), one.number),
        one.words,
        Number(units.seconds(step.mean) if step else "–", step.mean if step else None),
        Number(one.ratio or "–", float(one.ratio.rstrip("×")) if one.ratio else None),
        ending,
        Number(units.seconds(one.seconds), one.seconds),
        Number("–" if one.memory is None else units.size(one.memory), one.memory),
    )


def _cost_rows(costs: tuple[Cost, ...], prices: Prices) -> list[tuple[str, tuple[Number, ...]]]:
    money = f" {prices.currency}" if prices.currency else ""

    def row(label: str, form: str, name: str) -> tuple[str, tuple[Number, ...]]:
        values = [getattr(one, name) for one in costs]
        cells = (Number("–" if v is None else form.format(v), v) for v in values)
        return label, tuple(cells)

    seconds = (
        Number("–" if one.epoch_seconds is None else units.seconds(one.epoch_seconds), s)
        for one, s in ((one, one.epoch_seconds) for one in costs)
    )
    return [
        ("an epoch", tuple(seconds)),
        row("power", "{:.0f} W", "watts"),
        row("energy of a step", "{:.3g} J", "joules_step"),
        row("energy of an epoch", "{:.3g} kWh", "kwh_epoch"),
        row("CO₂ of an epoch, about", "{:.3g} g", "co2_epoch"),
        row("the machine, for an epoch", f"{{:.4g}}{money}", "machine_epoch"),
        row("electricity, for an epoch", f"{{:.4g}}{money}", "electricity_epoch"),
        row(f"the machine, for {units.count(STEPS)} steps", f"{{:.4g}}{money}", "machine_steps"),
        row(
            f"electricity, for {units.count(STEPS)} steps", f"{{:.4g}}{money}", "electricity_steps"
        ),
    ]
