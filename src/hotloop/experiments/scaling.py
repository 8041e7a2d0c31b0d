"""A 3D segmentation network over volume, batch and number format: volumes a second and memory."""

from __future__ import annotations

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

WORKLOAD = "unet:UNet3d"
VOLUMES = {True: (64, 96, 128), False: (16, 24)}
BATCHES = {True: (1, 2, 4), False: (1, 2)}
ON_CPU = {"width": 8, "levels": 3, "pool": 4}

Form = tuple[dict[str, Any], tuple[LeverSetting, ...]]
FORMS: dict[bool, dict[str, Form]] = {
    True: {
        "strict float32": ({"tf32": "off"}, ()),
        "PyTorch's defaults": ({}, ()),
        "bfloat16": ({}, (lever("bf16"),)),
        "bfloat16, compiled": (
            {},
            (lever("bf16"), lever("channels_last"), lever("compile", mode="default")),
        ),
    },
    False: {
        "PyTorch's defaults": ({}, ()),
        "compiled": ({}, (lever("compile", mode="default"),)),
    },
}


class Scaling(Experiment):
    name = "scaling"
    summary = "C2: a 3D UNet over volume × batch × format: volumes a second and memory"

    def run(self, lab: Lab) -> Outcome:
        batches = (lab.asked.batch_size,) if lab.asked.batch_size else BATCHES[lab.on_gpu]
        cases = [
            _case(lab.on_gpu, volume, batch, name)
            for volume in VOLUMES[lab.on_gpu]
            for batch in batches
            for name in FORMS[lab.on_gpu]
        ]
        measured = lab.measure(cases, runs=1 if len(cases) > 12 else None)
        return Outcome(
            self.name,
            "Volume, batch and format",
            lab.where,
            ("volume", "batch", "format", "a step", "volumes/s", "memory"),
            tuple(_row(one) for one in measured),
            _figure(measured),
            (*words.failures(measured), *_gains(measured)),
            tuple(measured),
        )


def _case(on_gpu: bool, volume: int, batch: int, name: str) -> Case:
    settings, levers = FORMS[on_gpu][name]
    small = {} if on_gpu else ON_CPU
    sizes = {"volume": volume, "batch_size": batch}
    return Case(f"{volume}³ × {batch}, {name}", WORKLOAD, {**small, **sizes, **settings}, levers)


def _row(one: Measured) -> tuple[str, ...]:
    settings = one.case.settings
    return (
        f"{settings['volume']}³",
        str(settings["batch_size"]),
        one.case.label.partition(", ")[2],
        words.seconds(one.step),
        words.rate(one.rate),
        words.size(one.memory),
    )


def _gains(measured: list[Measured]) -> list[str]:
    """For each volume: the best of all, against the defaults and strict float32 with one volume."""
    notes = []
    for volume in dict.fromkeys(one.case.settings["volume"] for one in measured):
        here = [one for one in measured if one.case.settings["volume"] == volume]
        best = max(here, key=lambda one: one.rate or 0.0)
        for start in ("PyTorch's defaults", "strict float32"):
            first = next((one for one in here if one.case.label.endswith(start)), None)
            found = gain(first, best) if first else None
            if found:
                label = best.case.label.partition(", ")[2]
                size = best.case.settings["batch_size"]
                notes.append(
                    f"{volume}³: {words.ratio(found)} from {start} with a batch of "
                    f"{first.case.settings['batch_size'] if first else ''}, by {label} with {size}."
                )
    return notes


def _figure(measured: list[Measured]) -> Figure:
    series: dict[str, list[tuple[str, float]]] = {}
    for one in measured:
        if one.rate:
            where, _, name = one.case.label.partition(", ")
            series.setdefault(name, []).append((where, one.rate))
    lines = tuple(Series(name, tuple(points)) for name, points in series.items())
    return Figure("bars", "Volumes a second", "1/s", lines)
