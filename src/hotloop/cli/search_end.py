"""What is left when a search is over: the plan, the report, the screen or the JSON."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hotloop.cli import common, plan_file
from hotloop.errors import StudyNotWritable
from hotloop.job import ScriptJob
from hotloop.report import markdown
from hotloop.report.search_console import show_search
from hotloop.report.search_figures import search_figures
from hotloop.report.search_rows import SearchRows, rows
from hotloop.study import Found, Options, Study

LONGER = 1000
"""Steps that `verify` is proposed with: many more than a search looks at."""


@dataclass(frozen=True)
class End:
    rows: SearchRows
    study: Path
    report: Path
    plan: Path | None
    note: str
    """When the plan is not where it was wanted."""


def write(record: Study, job: ScriptJob, folder: Path, wanted: Path) -> End:
    """Writes the plan, if there is one, and the report."""
    plan, note = None, ""
    if record.found is not None and record.found.plan is not None:
        plan, note = plan_file.write(record.found.plan, wanted, folder)
    end = End(rows(record), folder / "study.json", folder / "report.md", plan, note)
    text = markdown.page(job.shown, shlex.join(job.command), end.rows, commands(job, end))
    try:
        end.report.write_text(text, encoding="utf-8")
    except OSError as error:
        raise StudyNotWritable(
            f"{end.report} cannot be written: {error.strerror}.",
            "Free some space. The study is kept: --resume makes the report.",
        ) from None
    return end


def commands(job: ScriptJob, end: End) -> list[tuple[str, str]]:
    if end.plan is None:
        return []
    plan = shlex.quote(common.short(end.plan))
    longer = f"hotloop verify --plan {plan} --steps {LONGER} {common.command(job)}"
    return [
        ("to train under the plan", f"hotloop run --plan {plan} {common.command(job)}"),
        ("to look longer whether it trains the same", longer),
    ]


def show(record: Study, job: ScriptJob, end: End) -> None:
    left = [("study", common.short(end.study))]
    if end.plan is not None:
        left.insert(0, ("plan", common.short(end.plan)))
    if end.note:
        left.insert(0, ("note", end.note))
    left.append(("report", common.short(end.report)))
    show_search(Console(), job.shown, end.rows, left, commands(job, end))


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
        "warnings": found.warnings,
        "cost": {"runs": figures.runs, "seconds": figures.seconds},
        "payback": figures.payback,
        "paths": {
            "study": str(end.study),
            "report": str(end.report),
            "plan": str(end.plan.absolute()) if end.plan else None,
        },
    }
