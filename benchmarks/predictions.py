"""Do the diagnosis's predictions save trials? The same search with them and without.

    python benchmarks/predictions.py [--steps 20] [--out FILE] [JOB…]

A job is measured, looked into and diagnosed once. Then the search climbs twice, each trial in a
fresh process: once knowing what the findings predict, once with nothing but what a step consists
of. A plan that both ask for is run once and counted for each, so that chance cannot favour one of
them. It is counted how many trials each takes until it has met its best plan, and until it ends.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from hotloop import machine, study
from hotloop.diagnose.case import case_of
from hotloop.diagnose.diagnosis import Diagnosis, diagnose
from hotloop.figures import figures
from hotloop.inspection import Inspection
from hotloop.job import ScriptJob
from hotloop.plan import Plan
from hotloop.report.plan_words import plan_words
from hotloop.search.climb import Climb, climb
from hotloop.search.score import Score
from hotloop.study import Found, Options, Study
from hotloop.trial.launch import ProcessLauncher
from hotloop.trial.order import Glimpse
from hotloop.trial.trial import Trial
from hotloop.workshop.granted import Granted
from hotloop.workshop.promising import promising
from hotloop.workshop.scores import score_of
from hotloop.workshop.watching import Outlook
from hotloop.workshop.workshop import Workshop

ROOT = Path(__file__).parents[1]
JOBS = {
    "image_cnn": ROOT / "examples" / "image_cnn.py",
    "char_gpt": ROOT / "examples" / "char_gpt.py",
    **{
        name: ROOT / "benchmarks" / "planted" / f"{name}.py"
        for name in ("decoding", "too_few_workers", "many_parameters", "one_thread")
    },
}
LIMIT_SECONDS = 300.0


@dataclass(frozen=True)
class Searched:
    """What one of the two searches came to."""

    offered: tuple[str, ...]
    """In the order in which they are tried."""
    trials: int
    until_best: int
    """Trials until the plan that it chose was met."""
    plan: str
    seconds: float
    """A step under that plan, by the process that met it."""


class Nobody:
    """Watches a search."""

    def planned(self, study: Study, outlook: Outlook) -> None: ...

    def began(self, number: int, purpose: str, plan: Plan) -> None: ...

    def glimpsed(self, glimpse: Glimpse) -> None: ...

    def ended(self, trial: Trial, study: Study) -> None: ...


class Counting:
    """A bench that counts what it is asked for, whoever has asked for the same before."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self.asked: list[Plan] = []

    @property
    def spent(self) -> float:
        return 0.0

    def measure(self, plan: Plan, purpose: str, give_up_above: float | None = None) -> Score:
        self.asked.append(plan)
        return self._workshop.measure(plan, purpose)  # to the end: the other may ask for it too


def compared(name: str, steps: int, folder: Path) -> tuple[Searched, Searched]:
    job = ScriptJob(str(JOBS[name]), False, (), sys.executable, str(folder))
    record = study.begin("optimize", job, machine.describe(), Found(Options()))
    granted = Granted(LIMIT_SECONDS, None, steps)
    workshop = Workshop(job, record, granted, folder / "study", ProcessLauncher(), Nobody())
    (folder / "study").mkdir()
    baseline = workshop.baseline()
    found = figures(baseline.measurement) if baseline.measurement else None
    if found is None or baseline.measurement is None:
        raise SystemExit(f"{name} as it is: {baseline.state}: {baseline.reason}")
    workshop.measure_by(found)
    looked = workshop.looked(Plan())
    diagnosis = diagnose(case_of(baseline.measurement, found, record.machine, looked))

    def climbed(known: Diagnosis | None, inspection: Inspection | None) -> Searched:
        cores = len(os.sched_getaffinity(0))
        assert baseline.measurement is not None
        offered, _ = promising(
            baseline.measurement, found, cores, Options(), known, inspection, record.machine
        )
        bench = Counting(workshop)
        start = score_of(baseline, "speed").value or found.step.mean
        result = climb(start, offered, bench, patience=float("inf"))
        return _searched(result, bench, start, tuple(one.lever for one in offered))

    # What levers say of themselves rests on the look as well: both have it.
    return climbed(diagnosis, looked.inspection), climbed(None, looked.inspection)


def _searched(found: Climb, bench: Counting, start: float, offered: tuple[str, ...]) -> Searched:
    until = bench.asked.index(found.plan) + 1 if found.plan.levers else 0
    kept = [one.score.value for one in found.tried if one.kept and one.plan == found.plan]
    seconds = kept[-1] if kept and kept[-1] is not None else start
    return Searched(offered, len(bench.asked), until, plan_words(found.plan), seconds)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--out", type=Path)
    parser.add_argument("jobs", nargs="*", default=list(JOBS), metavar="JOB")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.jobs if name not in JOBS]:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(JOBS)}")
    made: dict[str, dict[str, object]] = {}
    totals = [0, 0]
    for name in arguments.jobs:
        with tempfile.TemporaryDirectory() as folder:
            pair = compared(name, arguments.steps, Path(folder))
        totals = [total + one.until_best for total, one in zip(totals, pair, strict=True)]
        made[name] = {"with": asdict(pair[0]), "without": asdict(pair[1])}
        for words, one in zip(("with predictions", "without"), pair, strict=True):
            print(
                f"{name:16} {words:17} {one.until_best:2} trials until {one.plan}"
                f" ({one.seconds * 1e3:.1f} ms), {one.trials} in all",
                flush=True,
            )
        if arguments.out:
            arguments.out.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    print(f"until the best plan: {totals[0]} trials with predictions, {totals[1]} without")


if __name__ == "__main__":
    main()
