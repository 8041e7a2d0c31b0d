"""The ladder: a ResNet-18 as PyTorch starts, then one technique after the other, each on top."""

from __future__ import annotations

from collections.abc import Sequence
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
from hotloop.plan import LeverSetting

WORKLOAD = "resnet:ResNet18"
ON_GPU = {"batch_size": 32}
ON_CPU = {"batch_size": 8, "size": 64, "width": 16, "classes": 10, "pool": 16}
RUNGS: dict[bool, tuple[LeverSetting, ...]] = {
    True: (
        lever("tf32"),
        lever("bf16"),
        lever("channels_last"),
        lever("cudnn_benchmark"),
        lever("fused_optimizer"),
        lever("compile", mode="default"),
        lever("step_graph"),
    ),
    False: (
        lever("fused_optimizer"),
        lever("channels_last"),
        lever("compile", mode="default"),
    ),
}
WORTH = 1.03


class Ladder(Experiment):
    name = "ladder"
    summary = "ResNet-18, one technique after the other, with its own and the cumulative gain"
    larger: tuple[int, ...] = (2, 4, 8, 16, 32)
    """Times the batch, at the top of the ladder."""

    def run(self, lab: Lab) -> Outcome:
        settings: dict[str, Any] = dict(ON_GPU if lab.on_gpu else ON_CPU)
        settings["batch_size"] = lab.asked.batch_size or settings["batch_size"]
        rungs = RUNGS[lab.on_gpu]
        cases = [Case("as PyTorch starts", WORKLOAD, settings)]
        cases += [
            Case(f"+ {one.lever}", WORKLOAD, settings, rungs[: place + 1])
            for place, one in enumerate(rungs)
        ]
        strict = [Case("strict float32", WORKLOAD, {**settings, "tf32": "off"})]
        measured = lab.measure([*(strict if lab.on_gpu else []), *cases])
        climbed = measured[-len(cases) :]
        top = max(climbed, key=lambda one: one.rate or 0.0)
        everything = [*measured, *_with_larger_batches(lab, top, self.larger)]
        return Outcome(
            self.name,
            "The ladder",
            lab.where,
            ("", "own gain", "cumulative", "a step", "samples/s", "memory"),
            tuple(_row(climbed, one) for one in everything),
            _figure(climbed[0], everything),
            _notes(everything, climbed[0], top),
            tuple(everything),
            _told(everything, climbed[0], top),
        )


def _with_larger_batches(lab: Lab, top: Measured, larger: Sequence[int]) -> list[Measured]:
    """Until it wins nothing more, or does not fit."""
    found: list[Measured] = []
    for times in larger if top.ran else ():
        size = times * int(top.case.settings["batch_size"])
        settings = {**top.case.settings, "batch_size": size, "steps": 200}
        found += lab.measure([Case(f"batch {size}", WORKLOAD, settings, top.case.levers)])
        before = found[-2] if len(found) > 1 else top
        won = gain(before, found[-1])
        if won is None or won.ratio < WORTH:
            break
    return found


def _row(climbed: list[Measured], one: Measured) -> tuple[str, ...]:
    place = climbed.index(one) if one in climbed else 0
    return (
        one.case.label,
        words.ratio(gain(climbed[place - 1], one)) if place else "",
        "" if one is climbed[0] else words.ratio(gain(climbed[0], one)),
        words.seconds(one.step),
        words.rate(one.rate),
        words.size(one.memory),
    )


def _notes(measured: list[Measured], first: Measured, top: Measured) -> tuple[str, ...]:
    notes = [*words.failures(measured)]
    if kept := gain(first, top):
        notes.append(f"With the batch kept: {words.ratio(kept)} from PyTorch's defaults.")
    free = max(measured, key=lambda one: one.rate or 0.0)
    if freely := gain(first, free):
        notes.append(f"With the batch free: {words.ratio(freely)}, at {free.case.label}.")
    strict = next((one for one in measured if one.case.label == "strict float32"), None)
    if strict and (found := gain(strict, top)):
        notes.append(f"From strict float32, with the batch kept: {words.ratio(found)}.")
    return tuple(notes)


def _told(measured: list[Measured], first: Measured, top: Measured) -> dict[str, Any]:
    free = max(measured, key=lambda one: one.rate or 0.0)
    strict = next((one for one in measured if one.case.label == "strict float32"), None)
    pairs = {"kept": (first, top), "free": (first, free)}
    if strict:
        pairs |= {"kept_from_strict": (strict, top), "free_from_strict": (strict, free)}
    gains = {name: gain(*pair) for name, pair in pairs.items()}
    ratios: dict[str, Any] = {name: won.ratio if won else None for name, won in gains.items()}
    return {**ratios, "top": top.case.label, "largest": free.case.label}


def _figure(first: Measured, measured: list[Measured]) -> Figure:
    gains = [(one.case.label, gain(first, one)) for one in measured]
    points = tuple((label, found.ratio) for label, found in gains if found)
    return Figure("bars", "Times as fast as PyTorch starts", "×", (Series("cumulative", points),))
