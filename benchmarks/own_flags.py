"""Is a script under a plan as fast as with its author's own best flags?

    python benchmarks/own_flags.py --plan hotloop.json --flags='--dtype=bfloat16 --compile=True' \\
        [--pairs 5] [--steps 60] [--at-least RATIO] [--out FILE] \\
        -- train.py --dtype=float32 --compile=False …

Pairs of fresh processes, one after the other, in alternating order: the script as given under the
plan, and the script with the flags appended and no plan. Each runs once before: a process that has
just compiled is slower for a while. The ratio says how many times as fast the plan is; the interval
is the one that `hotloop optimize` proves gains by. With `--at-least` the exit status is 1 below it.

    python benchmarks/own_flags.py --plan hotloop.json --flags='--gib 0' --at-least 0.77 \\
        -- jobs/small_card.py

asks what it costs to fit a small card: of the same script where it fits as it is.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from whole_training import compared

from hotloop import plan
from hotloop.figures import figures
from hotloop.job import ScriptJob
from hotloop.plan import Plan
from hotloop.search.compare import Pair
from hotloop.trial.launch import ProcessLauncher
from hotloop.trial.order import Glimpse, Order
from hotloop.trial.spec import StopRule


def ignore(glimpse: Glimpse) -> None:
    """Nobody watches."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--flags", required=True)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--at-least", type=float, default=0.0, metavar="RATIO")
    parser.add_argument("--out", type=Path)
    parser.add_argument("script", nargs="+")
    arguments = parser.parse_args()
    script, *words = arguments.script
    given = ScriptJob(script, False, tuple(words), sys.executable, os.getcwd())
    own = ScriptJob(
        script, False, (*words, *shlex.split(arguments.flags)), sys.executable, os.getcwd()
    )
    chosen = plan.load(arguments.plan)
    pairs: list[Pair] = []
    with tempfile.TemporaryDirectory() as study:  # one: what is compiled once is used again
        numbers = itertools.count(1)

        def seconds(job: ScriptJob, under: Plan) -> float:
            number, stop = next(numbers), StopRule(steps=arguments.steps)
            order = Order(number, job, under, stop, 600.0, Path(study, f"trial-{number}"))
            trial = ProcessLauncher().launch(order, ignore)
            found = figures(trial.measurement) if trial.measurement else None
            if found is None:
                raise SystemExit(f"the trial is {trial.state}: {trial.reason}")
            return found.step.mean

        runs = [("own", own, Plan()), ("plan", given, chosen)]
        for _, job, under in runs:
            seconds(job, under)
        for index in range(arguments.pairs):
            ordered = runs[:: 1 if index % 2 else -1]
            took = {name: seconds(job, under) for name, job, under in ordered}
            pairs.append(Pair(baseline=took["own"], candidate=took["plan"]))
            ms = {name: round(value * 1e3, 3) for name, value in took.items()}
            print(f"{index + 1}  own flags {ms['own']} ms  plan {ms['plan']} ms", flush=True)
    found = compared(pairs)
    print(f"the plan is {found.ratio:.3f}× as fast [{found.low:.3f}, {found.high:.3f}]")
    if arguments.out:
        arguments.out.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    sys.exit(0 if found.ratio >= arguments.at_least else 1)


if __name__ == "__main__":
    main()
