"""How often a gain is claimed where there is none: a job compared with itself, live.

    python benchmarks/self_comparison.py [--comparisons 50] [--out FILE] [SCRIPT]

Each comparison is five pairs of fresh processes of the same script under the same, empty plan, run
one after the other, the first of each pair counted as the candidate every other time. Whatever the
machine does meanwhile is part of the test. At a one-sided risk of 0.5%, 50 comparisons should claim
no gain, and rarely one.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from hotloop.figures import figures
from hotloop.job import ScriptJob
from hotloop.plan import Plan
from hotloop.search.compare import LEAST_PAIRS, Comparison, Pair, compare
from hotloop.trial.launch import ProcessLauncher
from hotloop.trial.order import Glimpse, Order
from hotloop.trial.spec import StopRule

EXAMPLE = Path(__file__).parents[1] / "examples" / "microbatches.py"


def ignore(glimpse: Glimpse) -> None:
    """Nobody watches."""


def seconds_a_step(job: ScriptJob, folder: Path, steps: int) -> float:
    order = Order(1, job, Plan(), StopRule(steps=steps), 120.0, folder / "trial")
    trial = ProcessLauncher().launch(order, ignore)
    found = figures(trial.measurement) if trial.measurement else None
    if found is None:
        raise SystemExit(f"the trial is {trial.state}: {trial.reason}")
    return found.step.mean


def comparison(job: ScriptJob, steps: int) -> Comparison:
    pairs = []
    for index in range(LEAST_PAIRS):
        with tempfile.TemporaryDirectory() as folder:
            first, second = (
                seconds_a_step(job, Path(folder, name), steps) for name in ("first", "second")
            )
        pairs.append(Pair(first, second) if index % 2 else Pair(second, first))
    return compare(pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--comparisons", type=int, default=50)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--out", type=Path)
    parser.add_argument("script", nargs="?", default=str(EXAMPLE))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as cwd:
        job = ScriptJob(arguments.script, False, (), sys.executable, cwd)
        made: list[Comparison] = []
        for number in range(1, arguments.comparisons + 1):
            made.append(comparison(job, arguments.steps))
            one = made[-1]
            print(
                f"{number:3}  {one.ratio:.3f}× [{one.low:.3f}, {one.high:.3f}]"
                f"  {'CLAIMED' if one.faster else 'no gain'}",
                flush=True,
            )
            if arguments.out:
                _write(arguments.out, made)
    print(f"{sum(one.faster for one in made)} gains claimed in {len(made)} self-comparisons")


def _write(path: Path, made: list[Comparison]) -> None:
    claims = sum(one.faster for one in made)
    document = {"claimed": claims, "of": len(made), "comparisons": [asdict(one) for one in made]}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
