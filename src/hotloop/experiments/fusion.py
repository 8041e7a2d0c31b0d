"""Microbatches that a loop gathers one by one, fused; then in 16 bits, then as one CUDA graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
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

WORKLOAD = "mlp:MicrobatchMlp"
PASSES = 64
ON_CPU = {"features": 32, "hidden": 64, "pool": 8192}
TOLERANCE = {"float32": 1e-4, "bfloat16": 0.05, "float16": 0.01, "half": 0.05}
"""Of the mean distance of a weight, in units of the mean weight: a few hundred roundings of each
format. Where weights themselves are kept in 16 bits, their updates are rounded too."""
EPOCHS = 4


class Fusion(Experiment):
    name = "fusion"
    summary = "64 microbatches fused into one pass, in 16 bits, as one CUDA graph"

    def run(self, lab: Lab) -> Outcome:
        parts = _parts(lab)
        measured = lab.measure([part.case for part in parts])
        lab.trained(parts[0].case, weights_out="unfused.pt", epochs=EPOCHS)
        apart = {
            part.case.label: lab.trained(part.case, compare="unfused.pt", epochs=EPOCHS)
            for part in parts[1:]
        }
        return Outcome(
            self.name,
            "Fusing microbatches",
            lab.where,
            ("", "a step", "gain", "own gain", "weights apart", "agree"),
            tuple(_rows(measured, parts, apart)),
            _figure(measured),
            _notes(measured),
            tuple(measured),
            {
                "weights": apart,
                "tolerance": {part.case.label: TOLERANCE[part.form] for part in parts},
                "epochs": EPOCHS,
                "gains": _gains(measured),
            },
        )


@dataclass(frozen=True)
class _Part:
    case: Case
    form: str
    """The format that its weights are judged by."""
    over: int = 0
    """The row that it adds something to."""


def _parts(lab: Lab) -> list[_Part]:
    batch = lab.asked.batch_size or 32 * PASSES
    plain: dict[str, Any] = {"batch_size": batch, "microbatch": max(batch // PASSES, 1)}
    plain |= {} if lab.on_gpu else ON_CPU
    half, scaled = {**plain, "half": True}, {**plain, "precision": "float16"}
    fused = (lever("microbatch", size=0),)
    parts = [
        _Part(Case("one by one, float32", WORKLOAD, plain), "float32"),
        _Part(Case("fused, float32", WORKLOAD, plain, fused), "float32"),
        _Part(Case("fused, pure half", WORKLOAD, half, fused), "half", 1),
        _Part(Case("fused, float16 with a scaler", WORKLOAD, scaled, fused), "float16", 1),
    ]
    parts = [one for one in parts if _is_wanted(one, lab.asked.precision)]
    return parts + (_graphs(parts) if lab.on_gpu else [])


def _is_wanted(part: _Part, precision: str | None) -> bool:
    return precision in (None, "float32") or part.form in ("float32", precision)


def _graphs(parts: list[_Part]) -> list[_Part]:
    """What is fused, once more, as one CUDA graph."""
    return [
        _Part(replace(part.case, label=f"{part.case.label}, graph",
                      levers=(*part.case.levers, lever("step_graph"))), part.form, place)
        for place, part in enumerate(parts) if place
    ]  # fmt: skip


def _rows(
    measured: list[Measured], parts: list[_Part], apart: dict[str, dict[str, Any]]
) -> list[tuple[str, ...]]:
    first = measured[0].case.label, words.seconds(measured[0].step), "", "", "", ""
    rows: list[tuple[str, ...]] = [first]
    for one, part in zip(measured[1:], parts[1:], strict=True):
        told = apart[one.case.label]
        row = (
            one.case.label,
            words.seconds(one.step),
            words.ratio(gain(measured[0], one)),
            words.ratio(gain(measured[part.over], one)),
            words.number(told.get("mean_difference"), 2),
            _agreement(told, TOLERANCE[part.form]),
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
