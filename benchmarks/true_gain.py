"""How much faster a planted job really is once the planted thing is removed. Measured, in pairs.

Time is counted end to end, evaluation and saving included, a step or a sample: what a step's median
leaves out is what some of these jobs are about.
"""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from planted.suite import Planted
from quiet import QUIET, undisturbed

from hotloop import stats, timeline
from hotloop.figures import figures
from hotloop.job import ScriptJob
from hotloop.measurement import Measurement
from hotloop.plan import Plan
from hotloop.trial.launch import ProcessLauncher
from hotloop.trial.order import Glimpse, Order
from hotloop.trial.spec import StopRule

LIMIT_SECONDS = 240.0


@dataclass(frozen=True)
class Gain:
    ratio: float
    """How many times as fast the fixed job is; the geometric mean over the pairs."""
    low: float | None
    high: float | None
    """Two-sided 95% interval. None: one pair has none."""
    pairs: list[tuple[float, float]]
    """Seconds a step or sample: as it is, fixed."""
    beside: float = 0.0
    """The most of a core that other processes took during one of these trials."""


def ignore(glimpse: Glimpse) -> None:
    """Nobody watches."""


def true_gain(planted: Planted, pairs: int, steps: int) -> Gain:
    """Every other pair runs the fixed job first.

    A pair beside other work is made again, a few times: those count that were disturbed least,
    whatever they came to.
    """
    made: list[tuple[float, tuple[float, float]]] = []
    while sum(beside < QUIET for beside, _ in made) < pairs and len(made) < 2 * pairs:
        made.append(_pair(planted, len(made) % 2 == 1, steps))
    chosen = sorted(made, key=lambda one: one[0])[:pairs]
    beside, paces = chosen[-1][0], [pair for _, pair in chosen]
    logs = [math.log(plain / fixed) for plain, fixed in paces]
    if len(logs) < 2:
        ratio = math.exp(statistics.fmean(logs))
        return Gain(ratio, None, None, paces, beside)
    mean, low, high = (math.exp(one) for one in _interval(logs))
    return Gain(mean, low, high, paces, beside)


def _pair(planted: Planted, fixed_first: bool, steps: int) -> tuple[float, tuple[float, float]]:
    """The most of a core that others took meanwhile, and the seconds: as it is, fixed."""
    found, beside = {}, 0.0
    for fixed in (fixed_first, not fixed_first):
        found[fixed], others = undisturbed(partial(seconds_a_unit, planted, fixed, steps))
        beside = max(beside, others)
    return beside, (found[False], found[True])


def _interval(logs: list[float]) -> tuple[float, float, float]:
    found = stats.t_interval(logs, 0.025)
    return found.mean, found.low, found.high


def seconds_a_unit(planted: Planted, fixed: bool, steps: int) -> float:
    arguments = (*planted.arguments, "--fixed") if fixed else planted.arguments
    with tempfile.TemporaryDirectory() as folder:
        job = ScriptJob(str(planted.script), False, arguments, sys.executable, folder)
        order = Order(1, job, Plan(), StopRule(steps=steps), LIMIT_SECONDS, Path(folder, "trial"))
        trial = ProcessLauncher().launch(order, ignore)
    if trial.measurement is None:
        raise SystemExit(f"{planted.name}: the trial is {trial.state}: {trial.reason}")
    return pace(trial.measurement, planted.unit)


def pace(measurement: Measurement, unit: str) -> float:
    """Seconds a step or a sample in the steady state, with what happens between steps."""
    found = figures(measurement)
    if found is None:
        raise SystemExit("the trial has no steady steps")
    steady = timeline.steps(measurement.events)[found.warm_up_steps :]
    seconds = sum(step.seconds + step.evaluation for step in steady)
    return seconds / (len(steady) if unit == "step" else sum(step.samples for step in steady))
