"""Techniques one by one and all together, on a transformer: speed, memory and what it learns."""

from __future__ import annotations

import statistics
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
from hotloop.plan import LeverSetting, Plan
from hotloop.search.interactions import combined

ON_GPU = {"batch_size": 12, "vocabulary": 50304}
"""A multiple of 64, as GPT-2 is commonly trained: products over 50257 words are no fit for tensor
cores."""
ON_CPU = {"batch_size": 8, "context": 128, "width": 64, "layers": 2, "pool": 32}
STEPS, LOOKS = 60, 12
"""Trained by each, and looks at the loss meanwhile. The average is compared: on a steep descent the
least rounding decides who is a step ahead, and two runs of the same end a percent apart."""

COMPILED = (lever("compile", mode="default"),)
TECHNIQUES: dict[bool, dict[str, tuple[LeverSetting, ...]]] = {
    True: {
        "TF32": (lever("tf32"),),
        "bfloat16": (lever("bf16"),),
        "fused optimizer": (lever("fused_optimizer"),),
        "compiled": COMPILED,
        "compiled, fused attention": (*COMPILED, lever("fused_attention")),
        "loss compiled": (lever("compile_loss"),),
    },
    False: {
        "fused optimizer": (lever("fused_optimizer"),),
        "compiled": COMPILED,
        "compiled, fused attention": (*COMPILED, lever("fused_attention")),
    },
}


class Techniques(Experiment):
    name = "techniques"
    summary = "each technique alone and all together: speed, memory, quality, in one table"

    def run(self, lab: Lab) -> Outcome:
        workload = "gpt:Gpt2" if lab.on_gpu else "gpt:TinyGpt"
        settings: dict[str, Any] = dict(ON_GPU if lab.on_gpu else ON_CPU)
        settings["batch_size"] = lab.asked.batch_size or settings["batch_size"]
        cases = [Case("as PyTorch starts", workload, settings)]
        if lab.on_gpu:
            cases.append(Case("strict float32", workload, {**settings, "tf32": "off"}))
        cases += [
            Case(name, workload, settings, levers)
            for name, levers in TECHNIQUES[lab.on_gpu].items()
        ]
        alone = lab.measure(cases)
        # Those of the first rounds are long ago by now.
        again, *together = lab.measure([cases[0], *_together(workload, settings, alone)])
        best = max(together, key=lambda one: one.rate or 0.0)
        losses = {
            one.case.label: lab.trained(one.case, steps=STEPS // LOOKS, epochs=LOOKS)
            for one in (again, best)
        }
        compared = [(alone[0], one) for one in alone] + [(again, one) for one in together]
        return Outcome(
            self.name,
            "Techniques, one by one and together",
            lab.where,
            ("technique", "a step", "gain", "memory", "of before"),
            tuple(_row(*pair) for pair in compared),
            _figure(compared),
            _notes([*alone, *together], losses),
            (*alone, again, *together),
            {"losses": losses, "best": best.case.label, **_best(again, best)},
        )


def _together(workload: str, settings: dict[str, Any], alone: list[Measured]) -> list[Case]:
    """All that came to their end; and, where there are CUDA graphs, the whole step as one."""
    levers = _all(alone)
    cases = [Case("all together", workload, settings, levers)]
    if "bf16" in {one.lever for one in levers}:
        graph = combined(Plan(levers), [lever("step_graph")]).levers
        cases.append(Case("all together, one graph", workload, settings, graph))
    return cases


def _all(measured: list[Measured]) -> tuple[LeverSetting, ...]:
    """Of those that came to their end, in the order in which they are applied."""
    found: tuple[LeverSetting, ...] = ()
    for one in measured:
        found += tuple(each for each in one.case.levers if one.ran and each not in found)
    return combined(Plan(), found).levers


def _row(first: Measured, one: Measured) -> tuple[str, ...]:
    return (
        one.case.label,
        words.seconds(one.step),
        "" if one is first else words.ratio(gain(first, one)),
        words.size(one.memory),
        "" if one is first else words.percent(_share(first, one)),
    )


def _best(first: Measured, best: Measured) -> dict[str, float | None]:
    found, memory = gain(first, best), _share(first, best)
    return {"gain": found.ratio if found else None, "memory_share": memory}


def _share(first: Measured, one: Measured) -> float | None:
    return one.memory / first.memory if one.memory and first.memory else None


def _notes(measured: list[Measured], losses: dict[str, dict[str, Any]]) -> tuple[str, ...]:
    notes = list(words.failures(measured))
    before, after = losses.values()
    if "course" in before and "course" in after:
        notes.append(
            f"Over {STEPS} steps the loss is {average(after):.4f} on average with all together, "
            f"{average(before):.4f} without; {after['loss']:.4f} and {before['loss']:.4f} at the "
            "end."
        )
    else:
        reasons = [str(told["reason"]) for told in losses.values() if "reason" in told]
        notes.append(f"Losses could not be compared: {'; '.join(reasons)}.")
    return tuple(notes)


def average(told: dict[str, Any]) -> float:
    """Of the loss, over a training."""
    return statistics.fmean(told["course"])


def _figure(compared: list[tuple[Measured, Measured]]) -> Figure:
    gains = [(one.case.label, gain(first, one)) for first, one in compared]
    points = tuple((label, found.ratio) for label, found in gains if found)
    return Figure("bars", "Times as fast as PyTorch starts", "×", (Series("gain", points),))
