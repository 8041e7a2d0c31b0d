"""torch.compile and its modes: what each wins, what compiling takes, when that is won back."""

from __future__ import annotations

import math
from typing import Any

from hotloop.experiments import words
from hotloop.experiments.base import (
    Case,
    Experiment,
    Figure,
    Measured,
    Outcome,
    Series,
    gain,
    lever,
)
from hotloop.experiments.lab import Lab

ON_GPU = {"batch_size": 32}
ON_CPU = {"batch_size": 8, "context": 64, "width": 64, "layers": 2}


class Compile(Experiment):
    name = "compile"
    summary = "torch.compile's modes, what compiling takes and after how many steps it pays"

    def run(self, lab: Lab) -> Outcome:
        workload = "resnet:ResNet18" if lab.on_gpu else "gpt:TinyGpt"
        settings: dict[str, Any] = dict(ON_GPU if lab.on_gpu else ON_CPU)
        settings["batch_size"] = lab.asked.batch_size or settings["batch_size"]
        modes = ["default", "reduce-overhead"] if lab.on_gpu else ["default"]
        cases = [
            Case("not compiled", workload, settings),
            *(Case(mode, workload, settings, (lever("compile", mode=mode),)) for mode in modes),
        ]
        measured = lab.measure(cases)
        return Outcome(
            self.name,
            "Compiling",
            lab.where,
            ("mode", "a step", "gain", "once", "pays after"),
            tuple(_row(measured[0], one) for one in measured),
            _figure(measured),
            (*words.failures(measured), *_verdict(measured)),
            tuple(measured),
        )


def break_even(before: Measured, after: Measured) -> int | None:
    """Steps after which the time that compiling took is won back. None: never."""
    if before.step is None or after.step is None or after.step >= before.step:
        return None
    return math.ceil((after.once or 0.0) / (before.step - after.step))


def _row(first: Measured, one: Measured) -> tuple[str, ...]:
    if one is first:
        return one.case.label, words.seconds(one.step), "", words.seconds(one.once), ""
    steps = break_even(first, one)
    pays = "never" if steps is None else f"{steps:,} steps"
    ratio = words.ratio(gain(first, one))
    return one.case.label, words.seconds(one.step), ratio, words.seconds(one.once), pays


def _verdict(measured: list[Measured]) -> tuple[str, ...]:
    """Of what came to its end, if it is more than one."""
    best = min(measured, key=lambda one: one.step or math.inf)
    if not measured[0].ran or sum(one.ran for one in measured) < 2:
        return ()
    if best is measured[0]:
        return ("Compiling does not make this job faster here.",)
    return (f"The fastest is {best.case.label}.",)


def _figure(measured: list[Measured]) -> Figure:
    points = tuple((one.case.label, 1e3 * one.step) for one in measured if one.step)
    return Figure("bars", "Time of a step by mode", "ms", (Series("step", points),))
