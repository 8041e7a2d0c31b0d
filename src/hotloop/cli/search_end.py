"""What is left when a search is over: the plan, the report, the screen or the JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hotloop import reporting
from hotloop.cli import common, plan_file
from hotloop.job import ScriptJob
from hotloop.report import command_words
from hotloop.report.search_console import show_search
from hotloop.report.search_figures import search_figures
from hotloop.report.search_rows import SearchRows, rows
from hotloop.study import Found, Options, Study


@dataclass(frozen=True)
class End:
    rows: SearchRows
    study: Path
    report: Path
    plan: Path | None
    note: str
    """When the plan is not where it was wanted."""
    result: str = ""
    """In a few words."""


def write(record: Study, job: ScriptJob, folder: Path, wanted: Path) -> End:
    """Writes the plan, if there is one, and the report."""
    plan, note = None, ""
    if record.found is not None and record.found.plan is not None:
        plan, note = plan_file.write(record.found.plan, wanted, folder)
    report, made = reporting.leave(record, folder, common.short(plan or wanted))
    return End(rows(record), folder / "study.json", report, plan, note, made.headline.big)


def commands(record: Study, job: ScriptJob, end: End) -> list[tuple[str, str]]:
    if end.plan is None:
        return []
    rescued = record.found is not None and record.found.rescue is not None
    words = common.command(job)
    found = command_words.to_apply(words, common.short(end.plan), comparable=not rescued)
    return [(f"to {what}", line) for what, line in found]


def show(record: Study, job: ScriptJob, end: End, more: Sequence[tuple[str, str]] = ()) -> None:
    """`more`: further commands to type next, and what for."""
    left = [("study", common.short(end.study))]
    if end.plan is not None:
        left.insert(0, ("plan", common.short(end.plan)))
    if end.note:
        left.insert(0, ("note", end.note))
    last = f"{end.result}, the report: {common.short(end.report)}"
    following = [*commands(record, job, end), *more]
    show_search(Console(), job.shown, end.rows, left, following, last)


def summary(record: Study, end: End) -> dict[str, object]:
    found = record.found or Found(Options())
    figures = search_figures(record)
    comparison = found.proof.comparison if found.proof else None
    ratio = comparison and {
        "ratio": comparison.ratio,
        "low": comparison.low,
        "high": comparison.high,
        "pairs": len(comparison.pairs),
    }
    return {
        "verdict": found.verdict,
        "ratio": ratio,
        "plan": found.plan,
        "before": figures.before,
        "after": figures.after,
        "ladder": figures.ladder,
        "refused": found.refused,
        "equivalence": found.equivalence,
        "soak": found.soaked,
        "rescue": found.rescue,
        "warnings": found.warnings,
        "cost": {"runs": figures.runs, "seconds": figures.seconds},
        "payback": figures.payback,
        "paths": {
            "study": str(end.study),
            "report": str(end.report),
            "markdown": str(end.report.with_name(reporting.MARKDOWN)),
            "plan": str(end.plan.absolute()) if end.plan else None,
        },
    }
