"""Number formats side by side: time, memory, arithmetic a second, and whether they learn alike."""

from __future__ import annotations

from typing import Any

from hotloop.experiments import words
from hotloop.experiments.base import Case, Experiment, Figure, Measured, Outcome, Series, gain
from hotloop.experiments.lab import Lab

ON_GPU = {"batch_size": 64}
ON_CPU = {"batch_size": 8, "context": 64, "width": 64, "layers": 2}
STEPS = 20
FORMATS: dict[bool, dict[str, dict[str, Any]]] = {
    True: {
        "strict float32": {"tf32": "off"},
        "PyTorch's defaults": {},
        "TF32 everywhere": {"tf32": "on"},
        "float16 with a scaler": {"precision": "float16"},
        "bfloat16": {"precision": "bfloat16"},
    },
    False: {
        "PyTorch's defaults": {},
        "bfloat16": {"precision": "bfloat16"},
        "float16 with a scaler": {"precision": "float16"},
    },
}
USUAL = "PyTorch's defaults"


class Precision(Experiment):
    name = "precision"
    summary = "float32, TF32, float16 with a scaler, bfloat16: speed, memory, loss"

    def run(self, lab: Lab) -> Outcome:
        workload = "resnet:ResNet18" if lab.on_gpu else "gpt:TinyGpt"
        settings: dict[str, Any] = dict(ON_GPU if lab.on_gpu else ON_CPU)
        settings["batch_size"] = lab.asked.batch_size or settings["batch_size"]
        cases = [
            Case(label, workload, {**settings, **form})
            for label, form in FORMATS[lab.on_gpu].items()
            if lab.asked.precision in (None, form.get("precision", "float32"))
        ]
        measured = lab.measure(cases)
        usual = next((one for one in measured if one.case.label == USUAL), measured[0])
        flops = _flops(lab, usual.case)
        losses = {case.label: lab.trained(case, steps=STEPS) for case in cases}
        return Outcome(
            self.name,
            "Number formats",
            lab.where,
            ("format", "a step", "gain", "memory", "TFLOP/s", f"loss after {STEPS} steps"),
            tuple(_row(one, usual, flops, losses[one.case.label]) for one in measured),
            _figure(measured),
            (*words.failures(measured), *_agreement(losses, usual.case.label)),
            tuple(measured),
            {"flops_a_step": flops, "losses": losses},
        )


def _flops(lab: Lab, case: Case) -> float | None:
    diagnosis = lab.profiled(case).diagnosis
    return diagnosis.numbers.flops_step if diagnosis else None


def _row(
    one: Measured, usual: Measured, flops: float | None, told: dict[str, Any]
) -> tuple[str, ...]:
    speed = flops / one.step / 1e12 if flops and one.step else None
    return (
        one.case.label,
        words.seconds(one.step),
        "" if one is usual else words.ratio(gain(usual, one)),
        words.size(one.memory),
        words.number(speed, 3),
        words.number(told.get("loss")) if "loss" in told else str(told.get("reason", "")),
    )


def _agreement(losses: dict[str, dict[str, Any]], usual: str) -> list[str]:
    wanted = losses[usual].get("loss")
    others = {
        label: told["loss"] for label, told in losses.items() if label != usual and "loss" in told
    }
    if wanted is None or not others:
        return ["No other format's loss could be compared."]
    apart = max(abs(loss / wanted - 1) for loss in others.values())
    return [f"After {STEPS} steps losses lie within {apart:.1%} of {usual}."]


def _figure(measured: list[Measured]) -> Figure:
    points = tuple((one.case.label, one.rate) for one in measured if one.rate)
    return Figure("bars", "Samples a second by format", "1/s", (Series("rate", points),))
