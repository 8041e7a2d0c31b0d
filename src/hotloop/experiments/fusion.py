"""Microbatches that a loop gathers one by one, fused; then in 16 bits, then as one CUDA graph."""

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
from hotloop.levers.registry import LEVERS

WORKLOAD = "mlp:MicrobatchMlp"
PASSES = 64
ON_CPU = {"features": 32, "hidden": 64, "pool": 8192}
TOLERANCE = {"float32": 1e-4, "bfloat16": 0.05, "float16": 0.01, "half": 0.05}
"""Of the mean distance of a weight, in units of the mean weight: a few hundred roundings of each
format. Where weights themselves are kept in 16 bits, their updates are rounded too."""
EPOCHS = 4


class Fusion(Experiment):
    name = "fusion"
    summary = "A1: 64 microbatches fused into one pass, in 16 bits, as one CUDA graph"

    def run(self, lab: Lab) -> Outcome:
        cases = _cases(lab)
        measured = lab.measure([case for case, _ in cases])
        lab.trained(cases[0][0], weights_out="unfused.pt", epochs=EPOCHS)
        apart = {
            case.label: lab.trained(case, compare="unfused.pt", epochs=EPOCHS)
            for case, _ in cases[1:]
        }
        return Outcome(
            self.name,
            "Fusing microbatches",
            lab.where,
            ("", "a step", "gain", "over the row before", "weights apart", "agree"),
            tuple(_rows(measured, [form for _, form in cases], apart)),
            _figure(measured),
            _notes(measured),
            tuple(measured),
            {
                "weights": apart,
                "tolerance": {case.label: TOLERANCE[form] for case, form in cases},
                "epochs": EPOCHS,
                "gains": _gains(measured),
            },
        )


def _cases(lab: Lab) -> list[tuple[Case, str]]:
    """Each with the format that its weights are judged by. What builds on another follows it."""
    batch = lab.asked.batch_size or 32 * PASSES
    plain: dict[str, Any] = {"batch_size": batch, "microbatch": max(batch // PASSES, 1)}
    plain |= {} if lab.on_gpu else ON_CPU
    half, scaled = {**plain, "half": True}, {**plain, "precision": "float16"}
    fused = (lever("microbatch", size=0),)
    cases = [
        (Case("one by one, float32", WORKLOAD, plain), "float32"),
        (Case("fused, float32", WORKLOAD, plain, fused), "float32"),
        (Case("fused, pure half", WORKLOAD, half, fused), "half"),
        (Case("fused, float16 with a scaler", WORKLOAD, scaled, fused), "float16"),
    ]
    if lab.on_gpu and "step_graph" in LEVERS:
        graph = (*fused, lever("step_graph"))
        cases[3:3] = [(Case("fused, pure half, one graph", WORKLOAD, half, graph), "half")]
        cases[2:2] = [(Case("fused, float32, one graph", WORKLOAD, plain, graph), "float32")]
        cases.append((Case("the same as one graph", WORKLOAD, scaled, graph), "float16"))
    return [pair for pair in cases if lab.asked.precision in (None, "float32", pair[1])]


def _rows(
    measured: list[Measured], formats: list[str], apart: dict[str, dict[str, Any]]
) -> list[tuple[str, ...]]:
    first = measured[0].case.label, words.seconds(measured[0].step), "", "", "", ""
    rows: list[tuple[str, ...]] = [first]
    for place, one in enumerate(measured[1:], start=1):
        told = apart[one.case.label]
        row = (
            one.case.label,
            words.seconds(one.step),
            words.ratio(gain(measured[0], one)),
            words.ratio(gain(measured[place - 1], one)),
            words.number(told.get("mean_difference"), 2),
            _agreement(told, TOLERANCE[formats[place]]),
        )
        rows.append(row)
    return rows


def _agreement(told: dict[str, Any], tolerance: float) -> str:
    if "mean_difference" not in told:
        return str(told.get("reason", "not known"))
    return "yes" if told["mean_difference"] < tolerance else "no"


def _gains(measured: list[Measured]) -> dict[str, float]:
    """Over one by one, of all that ran."""
    return {one.case.label: found.ratio for one in measured if (found := gain(measured[0], one))}


def _figure(measured: list[Measured]) -> Figure:
    points = tuple(_gains(measured).items())
    return Figure("bars", "Times as fast as one by one", "×", (Series("gain", points),))


def _notes(measured: list[Measured]) -> tuple[str, ...]:
    best = max(_gains(measured).values(), default=None)
    found = f"At best {best:.1f}× as fast as one by one." if best else "Nothing could be compared."
    return (found, *words.failures(measured))
