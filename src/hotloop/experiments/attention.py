"""Attention written out against the fused kernel, over sequence length: time and memory."""

from __future__ import annotations

from typing import Any

from hotloop.experiments import words
from hotloop.experiments.base import Case, Experiment, Figure, Measured, Outcome, Series, gain
from hotloop.experiments.lab import Lab

WORKLOAD = "gpt:TinyGpt"
ON_GPU = {"batch_size": 8, "width": 768, "heads": 12, "layers": 4, "precision": "bfloat16"}
ON_CPU = {"batch_size": 2, "width": 64, "heads": 4, "layers": 2, "pool": 16}
LENGTHS = {True: (256, 512, 1024, 2048, 4096), False: (64, 128, 256, 512)}


class Attention(Experiment):
    name = "attention"
    summary = "attention written out against the fused kernel, over sequence length"

    def run(self, lab: Lab) -> Outcome:
        settings: dict[str, Any] = dict(ON_GPU if lab.on_gpu else ON_CPU)
        settings["batch_size"] = lab.asked.batch_size or settings["batch_size"]
        if lab.asked.precision:
            settings["precision"] = lab.asked.precision
        lengths = LENGTHS[lab.on_gpu]
        cases = [
            Case(f"{kind}, {length}", WORKLOAD, {**settings, "context": length, "attention": kind})
            for length in lengths
            for kind in ("handwritten", "fused")
        ]
        measured = lab.measure(cases)
        pairs = list(zip(measured[::2], measured[1::2], strict=True))
        return Outcome(
            self.name,
            "Attention over sequence length",
            lab.where,
            ("tokens", "written out", "fused", "gain", "memory", "fused"),
            tuple(_row(n, *pair) for n, pair in zip(lengths, pairs, strict=True)),
            _figure(lengths, pairs),
            (*words.failures(measured), *_verdict(lengths, pairs)),
            tuple(measured),
        )


def _row(length: int, written: Measured, fused: Measured) -> tuple[str, ...]:
    return (
        str(length),
        words.seconds(written.step),
        words.seconds(fused.step),
        words.ratio(gain(written, fused)),
        words.size(written.memory),
        words.size(fused.memory),
    )


def _verdict(lengths: tuple[int, ...], pairs: list[tuple[Measured, Measured]]) -> tuple[str, ...]:
    """Of the lengths at which both came to their end, if there is any."""
    gains = [(length, gain(*pair)) for length, pair in zip(lengths, pairs, strict=True)]
    length, most = max(gains, key=lambda one: one[1].ratio if one[1] else 0.0)
    if most is None:
        return ()
    told = f"At {length} tokens the fused kernel makes the whole step {words.ratio(most)} as fast."
    return (told,)


def _figure(lengths: tuple[int, ...], pairs: list[tuple[Measured, Measured]]) -> Figure:
    series = []
    for name, sides in zip(("written out", "fused"), zip(*pairs, strict=True), strict=True):
        steps = [(str(length), one.step) for length, one in zip(lengths, sides, strict=True)]
        series.append(Series(name, tuple((n, 1e3 * step) for n, step in steps if step)))
    return Figure("lines", "Time of a step by sequence length", "ms", tuple(series))
