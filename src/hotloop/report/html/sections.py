"""The report's sections, from top to bottom. One that has nothing to say is left out."""

from __future__ import annotations

from collections.abc import Iterator

from hotloop import units
from hotloop.report.html import (
    area_figure,
    line_figure,
    roofline_figure,
    size_figure,
    stack_figure,
    strips,
    timeline_figure,
    waterfall_figure,
)
from hotloop.report.html.blocks import (
    Block,
    Checked,
    Drawn,
    Found,
    Gauged,
    Listed,
    Said,
    Section,
    Typed,
)
from hotloop.report.html.run_tables import (
    cost_section,
    depth_section,
    refused_section,
    runs_section,
)
from hotloop.report.page import Page, Training
from hotloop.report.roofline_rows import Roofline

NO_COURSE = (
    "How memory rises and falls within a step is not known: no run was looked into. "
    "hotloop profile does that."
)
COUNTED = (
    "The peak is measured, and so is what weights, gradients and the optimizer's state take at the "
    "end of a step; the rest is what is left."
)
IN_THE_MIDDLE = (
    "Of one process each, in the middle of those that were timed: its steps may differ a little "
    "from their mean, which stands above."
)
GPU_CLOCK = (
    "The same step on the GPU's own clock. A CPU that is ahead waits for the GPU, and by its own "
    "clock that time belongs to whatever it waits in."
)


def sections(page: Page) -> list[Section]:
    made = [
        _ladder(page),
        *((_limits(page),) if page.waterfall is None else ()),
        *((refused_section(page),) if page.waterfall is None else ()),
        _steps(page),
        _roofline(page),
        _memory(page),
        _training(page),
        depth_section(page),
        runs_section(page),
        *((refused_section(page),) if page.waterfall is not None else ()),
        *((_limits(page),) if page.waterfall is not None else ()),
        _sizes(page),
        cost_section(page),
        Section("job", "The job", (Listed(page.job),) if page.job else ()),
        Section("machine", "The machine", (Listed(page.machine),)),
        _commands(page),
    ]
    return [section for section in made if section.blocks]


def _ladder(page: Page) -> Section:
    blocks: list[Block] = []
    if page.waterfall is not None:
        blocks.append(Drawn(waterfall_figure.figure(page.waterfall)))
    if page.proof is not None:
        if not page.proof.faster:
            blocks.append(Said(f"The best plan found did not hold: {page.proof.reason}."))
        blocks.append(Drawn(strips.proof(page.proof)))
    title = "What makes it faster" if page.waterfall else "The proof"
    if page.waterfall and page.waterfall.objective == "memory":
        title = "What makes it smaller"
    return Section("ladder", title, tuple(blocks))


def _steps(page: Page) -> Section:
    blocks: list[Block] = []
    if page.steps.breakdowns:
        title = "A step by phase" + (", before and after" if len(page.steps.breakdowns) > 1 else "")
        note = IN_THE_MIDDLE if len(page.steps.breakdowns) > 1 else ""
        figure = stack_figure.phases("phases", title, page.steps.breakdowns, note)
        blocks.append(Drawn(figure, open_table=True))
    if page.steps.gpu:
        title = "A step on the GPU's clock"
        blocks.append(Drawn(stack_figure.phases("gpu", title, page.steps.gpu, GPU_CLOCK)))
    blocks += [Drawn(figure) for figure in timeline_figure.figures(page.steps.timelines)]
    return Section("step", "Where a step's time goes", tuple(blocks))


def _roofline(page: Page) -> Section:
    drawable = isinstance(page.roofline, Roofline) and page.roofline.ceilings
    if isinstance(page.roofline, Roofline) and drawable and page.roofline.places:
        block: Block = Drawn(roofline_figure.figure(page.roofline))
        return Section("roofline", "Against the machine", (block,))
    if not page.steps.breakdowns:
        return Section("roofline", "Against the machine", ())
    return Section("roofline", "Against the machine", (Said(str(page.roofline)),))


def _memory(page: Page) -> Section:
    if not page.memory.held:
        return Section("memory", "Memory", ())
    blocks: list[Block] = [Drawn(stack_figure.kinds(page.memory.held, COUNTED), open_table=True)]
    if page.memory.step is not None:
        blocks.append(Drawn(area_figure.figure(page.memory.step)))
    else:
        blocks.append(Said(NO_COURSE))
    courses = enumerate(page.memory.courses, start=1)
    blocks += [Drawn(line_figure.memory(course, number)) for number, course in courses]
    return Section("memory", "Memory", tuple(blocks))


def _training(page: Page) -> Section:
    title = "The same training?" if page.training.verdict else "The loss"
    return Section("training", title, tuple(_training_blocks(page.training)))


def _training_blocks(found: Training) -> Iterator[Block]:
    if found.verdict:
        yield Said(found.verdict, "strong")
    if found.closeness is not None:
        text = f"{found.closeness:.2g} of what would still pass"
        yield Gauged("largest difference", strips.closeness(found.closeness), text)
    if found.losses is not None:
        yield Drawn(line_figure.losses(found.losses))
    if found.facts:
        yield Listed(found.facts)
    if found.soaked is not None:
        soaked = found.soaked
        rows = [] if soaked.passed else [("soak", f"failed: {soaked.reason}")]
        rows += [("met", met) for met in soaked.met]
        rows += [("not met", missed) for missed in soaked.not_met]
        yield Listed(tuple(rows))


def _limits(page: Page) -> Section:
    found = page.diagnosed
    if found is None:
        return Section("limits", "What limits it", ())
    blocks: list[Block] = [Said(found.verdict, "strong")]
    if found.findings:
        blocks.append(Found(found.findings))
    blocks.append(Checked(found.checklist))
    blocks.append(Listed(found.numbers))
    return Section("limits", "What limits it", tuple(blocks))


def _sizes(page: Page) -> Section:
    drawable = page.sizes is not None and len(page.sizes.points) > 1
    blocks = (Drawn(size_figure.figure(page.sizes)),) if page.sizes and drawable else ()
    return Section("sizes-searched", "Batch size", blocks)


def _commands(page: Page) -> Section:
    blocks: list[Block] = []
    if page.payback is not None:
        steps, seconds = units.count(page.payback.steps), units.seconds(page.payback.seconds)
        blocks.append(
            Said(f"The search is paid back after {steps} steps, {seconds} under the plan.")
        )
    plan = (("hotloop.json, the plan", page.plan),) if page.plan else ()
    blocks.append(Typed((*page.to_apply, *page.to_reproduce, *plan)))
    title = "Apply it, or do it again" if page.plan else "Do it again"
    return Section("commands", title, tuple(blocks))
