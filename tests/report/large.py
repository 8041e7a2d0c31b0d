"""A study as large as they come: many trials, each with thousands of steps."""

from __future__ import annotations

import random
from dataclasses import replace

from hotloop.measurement import Losses, Measurement, Memory
from hotloop.plan import Plan
from hotloop.study import Study
from tests.builders import Log, measurement, trial
from tests.report.studies import BOTH, searched, won


def large_study(trials: int, steps: int, draw: random.Random, distinct: int | None = None) -> Study:
    """`distinct`: how many trials have samples of their own; all of them unless told."""
    logs = [_measured(steps, draw) for _ in range(distinct or trials)]
    purposes = ["baseline", *(["screen"] * (trials // 2)), *(["proof"] * trials)][:trials]
    made = [
        trial(
            purpose=purpose,
            plan=Plan() if number % 2 == 0 else BOTH,
            measurement=logs[number % len(logs)],
            seconds=60.0,
        )
        for number, purpose in enumerate(purposes)
    ]
    found = won().found
    assert found is not None
    return searched(replace(found), *made)


def _measured(steps: int, draw: random.Random) -> Measurement:
    log = Log()
    losses = Losses()
    for _ in range(steps):
        scale = 1 + draw.random() / 10
        log.data(scale, 8).forward(2 * scale, 8)
        losses.event.append(len(log.events))
        losses.value.append(draw.random())
        log.backward(3 * scale).optimizer(scale)
    return measurement(log.events, losses=losses, memory=Memory(host_peak=2**30))
