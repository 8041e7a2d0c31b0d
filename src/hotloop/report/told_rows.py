"""The trials of a study as they were told when they ran, and what became of each in the end."""

from __future__ import annotations

from dataclasses import replace

from hotloop.report.trial_rows import Telling, TrialRow
from hotloop.study import Study

IN_THE_END = "in the end; it was kept at first"


def told(study: Study) -> tuple[TrialRow, ...]:
    """One row a trial. While a search goes on, what is kept may still be refused."""
    telling = Telling(study.found.options.objective if study.found else "speed")
    rows = tuple(telling.tell(trial) for trial in study.trials)
    if study.found is None or not study.found.verdict:
        return rows
    refused = {one.lever for one in study.found.refused if one.tried}
    return tuple(_in_the_end(row, refused) for row in rows)


def _in_the_end(row: TrialRow, refused: set[str]) -> TrialRow:
    gone = [lever for lever in row.added if lever in refused]
    if row.outcome != "kept" or not gone:
        return row
    which = "" if len(gone) == len(row.added) else f"{', '.join(gone)} "
    return replace(row, outcome="refused", reason=which + IN_THE_END)
