"""A 3D segmentation network over volume, batch and number format: volumes a second and memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hotloop.experiments import words
from hotloop.experiments.base import (
    Case,
    Experiment,
    Figure,
    Gain,
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
BATCHES = {True: (1, 4, 16), False: (1, 2)}
ON_CPU = {"width": 8, "levels": 3, "pool": 4}

COMPILED = (
    lever("bf16"),
    lever("channels_last"),
    lever("compile", mode="default"),
    lever("compile_loss"),
    lever("fused_optimizer"),
)
Form = tuple[dict[str, Any], tuple[LeverSetting, ...]]
FORMS: dict[bool, dict[str, Form]] = {
    True: {
        "strict float32": ({"tf32": "off"}, ()),
        "PyTorch's defaults": ({}, ()),
        "bfloat16": ({}, (lever("bf16"),)),
        "bfloat16, all compiled": ({}, COMPILED),
    },
    False: {
        "PyTorch's defaults": ({}, ()),
        "compiled": ({}, (lever("compile", mode="default"),)),
    },
}


class Scaling(Experiment):
    name = "scaling"
    summary = "a 3D UNet over volume × batch × format: volumes a second and memory"
    volumes: tuple[int, ...] = ()
    """Edges, other than its own."""

    def run(self, lab: Lab) -> Outcome:
        batches = (lab.asked.batch_size,) if lab.asked.batch_size else BATCHES[lab.on_gpu]
        cases = [
            _case(lab.on_gpu, volume, batch, name)
            for volume in self.volumes or VOLUMES[lab.on_gpu]
            for batch in batches
            for name in FORMS[lab.on_gpu]
        ]
        measured = lab.measure(cases, runs=1 if len(cases) > 12 else None)
        gains = _gains(measured)
        return Outcome(
            self.name,
            "Volume, batch and format",
            lab.where,
            ("volume", "batch", "format", "a step", "volumes/s", "memory"),
            tuple(_row(one) for one in measured),
            _figure(measured),
            (*words.failures(measured), *(one.sentence for one in gains)),
            tuple(measured),
            {"gains": [one.told for one in gains]},
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


@dataclass(frozen=True)
class _Won:
    """The best at a volume, against where one would begin: a single volume, or the least batch."""

    start: Measured
    best: Measured
    found: Gain

    @property
    def sentence(self) -> str:
        (before, begun), (_, name) = _named(self.start), _named(self.best)
        batch = self.best.case.settings["batch_size"]
        return (
            f"{self.best.case.settings['volume']}³: {words.ratio(self.found)} from {begun} with a "
            f"batch of {before}, by {name} with {batch}."
        )

    @property
    def told(self) -> dict[str, Any]:
        return {
            "volume": self.best.case.settings["volume"],
            "from": _named(self.start)[1],
            "by": self.best.case.label,
            "gain": self.found.ratio,
        }


def _named(one: Measured) -> tuple[int, str]:
    return int(one.case.settings["batch_size"]), one.case.label.partition(", ")[2]


def _gains(measured: list[Measured]) -> list[_Won]:
    """For each volume: the best of all, against the defaults and against strict float32."""
    found = []
    for volume in dict.fromkeys(one.case.settings["volume"] for one in measured):
        here = [one for one in measured if one.case.settings["volume"] == volume]
        best = max(here, key=lambda one: one.rate or 0.0)
        for start in ("PyTorch's defaults", "strict float32"):
            first = next((one for one in here if _named(one)[1] == start), None)
            won = gain(first, best) if first else None
            if first and won:
                found.append(_Won(first, best, won))
    return found


def _figure(measured: list[Measured]) -> Figure:
    series: dict[str, list[tuple[str, float]]] = {}
    for one in measured:
        if one.rate:
            where, _, name = one.case.label.partition(", ")
            series.setdefault(name, []).append((where, one.rate))
    lines = tuple(Series(name, tuple(points)) for name, points in series.items())
    return Figure("bars", "Volumes a second", "1/s", lines)
