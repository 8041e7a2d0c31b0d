"""Makers of studies: searches that found something, and searches that did not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hotloop import study
from hotloop.equivalence.judge import Equivalence
from hotloop.measurement import Memory
from hotloop.plan import LeverSetting, Plan
from hotloop.search.candidate import Candidate
from hotloop.search.compare import Comparison, Pair, compare
from hotloop.search.parts import Contribution
from hotloop.search.proof import Proof
from hotloop.study import Found, Options, Refused, Soaked, Study
from hotloop.trial.trial import State, Trial
from tests.builders import Log, job, machine, measurement, trial

BF16 = LeverSetting("bf16", {})
COMPILE = LeverSetting("compile", {"mode": "reduce-overhead"})
WORKERS = LeverSetting("loader_workers", {"workers": 4, "prefetch": 2, "persistent": True})
BOTH = Plan((BF16, COMPILE))


def timed(purpose: str, plan: Plan, ms: float, **changes: Any) -> Trial:
    """A trial whose steps take `ms`: a fifth of it waiting for data, the rest forward and back."""
    log = Log()
    for _ in range(20):
        log.data(ms * 0.2, 8).forward(ms * 0.3, 8).backward(ms * 0.4).optimizer(ms * 0.1)
    made = measurement(log.events, memory=Memory(host_peak=2**30))
    return trial(**{"purpose": purpose, "plan": plan, "measurement": made, **changes})


def with_children(made: Trial, size: int) -> Trial:
    """The same, with child processes that hold so much."""
    assert made.measurement is not None
    memory = replace(made.measurement.memory, children_peak=size)
    return replace(made, measurement=replace(made.measurement, memory=memory))


def failed(purpose: str, plan: Plan, **changes: Any) -> Trial:
    return trial(**{"purpose": purpose, "plan": plan, "measurement": None, **changes})


def numbered(*trials: Trial) -> tuple[Trial, ...]:
    return tuple(replace(each, number=number) for number, each in enumerate(trials, start=1))


def ratio(before: float, after: float) -> Comparison:
    """Five pairs that nearly agree, of so many milliseconds."""
    return compare([Pair(before * 1.002**i / 1000, after / 1000) for i in range(-2, 3)])


def searched(found: Found | None, *trials: Trial) -> Study:
    begun = study.begin("optimize", job(), machine())
    # At a fixed time: made twice, it is the same study.
    return replace(begun, created="2026-01-01", trials=numbered(*trials), found=found)


def same(**changes: Any) -> Equivalence:
    made = Equivalence(
        same=True,
        reasons=(),
        steps=60,
        forced=3,
        compared=("Every batch of loader 0 by its checksum.",),
        not_compared=("Dropout, which was off.",),
        closeness=0.125,
    )
    return replace(made, **changes)


def won(**changes: Any) -> Study:
    """20 ms a step as it is, 16 with bf16, 10 with compile on top; tf32 is refused."""
    contributions = (Contribution("bf16", ratio(12, 10)), Contribution("compile", ratio(16, 10)))
    found = Found(
        options=Options(),
        candidates=(Candidate("bf16", ({},), 0.3), Candidate("compile", ({},), 0.2)),
        refused=(
            Refused("tf32", "1.004× is less than the 1.020× that would count", True, 65.0),
            Refused("pin_memory", "there is no GPU to copy to", False),
        ),
        proof=Proof(BOTH, ratio(20, 10), contributions, (), 0.01),
        equivalence=same(),
        soaked=Soaked(True, "", ("a second epoch",), ("evaluation",)),
        plan=BOTH,
        verdict="Proven faster.",
    )
    trials = (
        timed("baseline", Plan(), 20, seconds=60.0),
        timed("screen", Plan((BF16,)), 16, seconds=60.0),
        timed("screen", BOTH, 10, seconds=60.0),
        timed("screen", Plan((BF16, COMPILE, LeverSetting("tf32", {}))), 10, seconds=60.0),
        timed("proof", Plan(), 20, seconds=60.0),
        timed("proof", BOTH, 10, seconds=60.0),
        timed("reference", Plan(), 90, seconds=40.0),
    )
    return searched(replace(found, **changes), *trials)


def lost(**changes: Any) -> Study:
    """Nothing helps: one optimisation is slower, another crashes."""
    found = Found(
        options=Options(),
        refused=(Refused("bf16", "worse: 0.800× the best until then", True, 30.0),),
        verdict="Nothing makes this job faster.",
    )
    crash = failed("screen", Plan((COMPILE,)), state=State.CRASHED, reason="It failed: ValueError.")
    trials = (
        timed("baseline", Plan(), 20, seconds=30.0),
        timed("screen", Plan((BF16,)), 25, seconds=30.0),
        crash,
    )
    return searched(replace(found, **changes), *trials)
