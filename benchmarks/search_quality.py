"""How near the search comes to the best plan, and after how many trials.

    python benchmarks/search_quality.py RECORDED.json…
    python benchmarks/search_quality.py --record OUT.json --levers a,b,c,d,e -- SCRIPT ARGS…

The second way runs a job under all 32 plans of five optimisations, each in fresh processes, one a
round, and keeps what each took. It can be stopped at any time: the same command goes on with what
is missing, and one with more `--rounds` adds to what there is. It takes a few to tell plans apart
that differ by 3%. The fastest process counts: what else a machine does only ever takes time.
The first way replays the search on such tables and compares its choice with the best of all plans.
It exits with 1 when a choice is more than 3% slower, or took more than a third of the trials.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import quiet

from hotloop.figures import Figures, figures, training_loader
from hotloop.job import ScriptJob
from hotloop.levers.base import Seen
from hotloop.levers.registry import LEVERS
from hotloop.plan import LeverSetting, Plan
from hotloop.search.candidate import Candidate
from hotloop.search.climb import climb
from hotloop.search.interactions import names
from hotloop.search.score import Score
from hotloop.trial.launch import ProcessLauncher
from hotloop.trial.order import Glimpse, Order
from hotloop.trial.spec import StopRule
from hotloop.trial.trial import State, Trial

MOST_OVER_THE_BEST = 0.03
MOST_OF_THE_TRIALS = 1 / 3
LIMIT_SECONDS = 600.0

Table = dict[str, Any]
"""One recorded job: "job", "baseline", "levers" and "plans", as JSON."""


class Recorded:
    """A bench that looks up what was measured."""

    def __init__(self, table: Table) -> None:
        self._scores = {
            frozenset(plan["levers"]): Score(plan["seconds"], plan["reason"])
            for plan in table["plans"]
        }
        self.trials = 1
        """The job as it is has been measured before a search begins."""

    @property
    def spent(self) -> float:
        return 0.0

    def measure(self, plan: Plan, purpose: str, give_up_above: float | None = None) -> Score:
        self.trials += 1
        return self.of(plan)

    def of(self, plan: Plan) -> Score:
        return self._scores[frozenset(names(plan))]


def replay(table: Table) -> bool:
    """Whether the search did well on this job, which is also printed."""
    offered = [
        Candidate(lever["lever"], (lever["setting"],), lever["share"]) for lever in table["levers"]
    ]
    number = 2 ** len(offered)
    if len(table["plans"]) < number:
        raise SystemExit(f"{table['job']}: {len(table['plans'])} of {number} plans are recorded")
    bench = Recorded(table)
    as_it_is = bench.of(Plan()).value or table["baseline"]
    chosen = climb(as_it_is, offered, bench, patience=float("inf")).plan
    best = min(
        (plan for plan in table["plans"] if plan["seconds"] is not None),
        key=lambda plan: float(plan["seconds"]),
    )
    over = (bench.of(chosen).value or float("inf")) / float(best["seconds"]) - 1
    good = over <= MOST_OVER_THE_BEST and bench.trials <= number * MOST_OF_THE_TRIALS
    print(
        f"{table['job']}: {_words(names(chosen))}, {over:+.1%} over the best"
        f" ({_words(best['levers'])}), {bench.trials} trials of {number}"
        f"  {'good' if good else 'NOT GOOD'}"
    )
    return good


def _words(levers: Sequence[str]) -> str:
    return "+".join(levers) or "as it is"


class Recording:
    """Runs the plans of one job, and keeps the table after each."""

    def __init__(self, out: Path, job: ScriptJob, steps: int | None) -> None:
        self._out = out
        self._job = job
        self._stop = StopRule(steps=steps)
        self._folder = out.with_suffix(".trials")  # one for all: compiled code is kept in it
        named = " ".join((job.name, *job.args))
        self.table: Table = {"job": named, "digest": job.digest(), "plans": []}
        if out.exists():
            self.table = json.loads(out.read_text(encoding="utf-8"))

    def baseline(self, levers: Sequence[str]) -> None:
        if self.table["plans"]:
            recorded = [lever["lever"] for lever in self.table["levers"]]
            if recorded != list(levers) or self.table["digest"] != self._job.digest():
                raise SystemExit(f"{self._out} is a recording of something else")
            return
        trial, found = self._run(Plan())
        if found is None:
            raise SystemExit(f"the job as it is: {trial.state}: {trial.reason}")
        self.table["baseline"] = found.step.p50
        self.table["levers"] = [_offered(lever, trial, found) for lever in levers]
        self._keep(Plan(), trial, found)

    def plans(self, rounds: int) -> None:
        every = [Plan(), *_subsets(self.table["levers"])]
        for number in range(1, rounds + 1):
            for plan in every:
                known = self._known(plan)
                if known is None or (not known["reason"] and len(known["runs"]) < number):
                    self._keep(plan, *self._run(plan))

    def _known(self, plan: Plan) -> dict[str, Any] | None:
        same = (one for one in self.table["plans"] if one["levers"] == list(names(plan)))
        return next(same, None)

    def _run(self, plan: Plan) -> tuple[Trial, Figures | None]:
        number = sum(max(1, len(plan["runs"])) for plan in self.table["plans"]) + 1
        folder = self._folder / f"{number:02}"
        order = Order(number, self._job, plan, self._stop, LIMIT_SECONDS, folder)

        def launch() -> Trial:
            shutil.rmtree(folder, ignore_errors=True)  # of a trial that was cut off
            return ProcessLauncher().launch(order, _ignore)

        trial, _ = quiet.undisturbed(launch)
        if trial.state is State.INTERRUPTED:
            raise KeyboardInterrupt
        usable = trial.measurement if trial.state is State.COMPLETE else None
        return trial, figures(usable) if usable else None

    def _keep(self, plan: Plan, trial: Trial, found: Figures | None) -> None:
        seconds = found.step.p50 if found else None
        reason = "" if found else f"{trial.state}: {trial.reason}"
        levers = list(names(plan))
        kept = self._known(plan)
        if kept is None:
            kept = {"levers": levers, "seconds": None, "reason": reason, "runs": []}
            self.table["plans"].append(kept)
        if seconds is not None:
            kept["runs"].append(seconds)
            kept["seconds"] = min(kept["runs"])
        partial = self._out.with_suffix(".partial")
        partial.write_text(json.dumps(self.table, indent=1) + "\n", encoding="utf-8")
        partial.replace(self._out)
        took = f"{seconds * 1000:.2f} ms" if seconds is not None else reason
        print(f"{len(self.table['plans']):2}  {_words(levers)}: {took}", flush=True)

    def close(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _offered(lever: str, trial: Trial, found: Figures) -> dict[str, Any]:
    """As the search would be offered it; one that expects nothing here is offered last."""
    assert trial.measurement is not None
    cores = len(os.sched_getaffinity(0))
    seen = Seen(trial.measurement, found, training_loader(trial.measurement), cores)
    settings = LEVERS[lever].settings(seen) or [{}]
    return {"lever": lever, "setting": settings[0], "share": LEVERS[lever].expected(seen).share}


def _subsets(levers: list[dict[str, Any]]) -> list[Plan]:
    ordered = sorted(levers, key=lambda lever: list(LEVERS).index(lever["lever"]))
    settings = [LeverSetting(lever["lever"], lever["setting"]) for lever in ordered]
    sizes = range(1, len(settings) + 1)
    return [Plan(some) for size in sizes for some in itertools.combinations(settings, size)]


def _ignore(glimpse: Glimpse) -> None:
    """Nobody watches."""


def record(arguments: argparse.Namespace) -> None:
    script, *rest = arguments.files
    job = ScriptJob(script, False, tuple(rest), sys.executable, os.getcwd())
    levers = [name for name in arguments.levers.split(",") if name]
    if unknown := [name for name in levers if name not in LEVERS]:
        raise SystemExit(f"unknown: {', '.join(unknown)}")
    recording = Recording(arguments.record.resolve(), job, arguments.steps)
    recording.baseline(levers)
    recording.plans(arguments.rounds)
    recording.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", type=Path, metavar="OUT.json")
    parser.add_argument("--levers", default="", help="five names, joined by commas")
    parser.add_argument("--steps", type=int, help="measured steps a trial")
    parser.add_argument("--rounds", type=int, default=1, help="processes a plan")
    parser.add_argument("files", nargs="+", help="tables; or a script and its arguments")
    arguments = parser.parse_args()
    if arguments.record:
        record(arguments)
        return
    tables = [json.loads(Path(name).read_text(encoding="utf-8")) for name in arguments.files]
    verdicts = [replay(table) for table in tables]
    sys.exit(0 if all(verdicts) else 1)


if __name__ == "__main__":
    main()
