"""What a job holds in memory at its peak, by kind, as plain rows.

The peak is measured, and so is what models and optimizers hold at the end of a run. What is left of
the peak is everything else. Older studies lack the second: it then follows from what was found in
the script, where that says enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.measurement import Inventory, Measurement
from hotloop.report.sides import Side
from hotloop.report.thinning import thinned
from hotloop.study import Study

SIZES = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2, "complex64": 8, "int8": 1}
STATES = {"Adam": 2, "AdamW": 2, "NAdam": 2, "RAdam": 2, "Adamax": 2, "Adagrad": 1, "Rprop": 2}
"""Tensors of a parameter's own size that such an optimizer keeps, in its usual form."""
MOST_POINTS = 400


@dataclass(frozen=True)
class Kind:
    name: str
    bytes: int | None
    """None: unknown, which is not the same as nothing."""


@dataclass(frozen=True)
class Held:
    label: str
    where: str
    """"GPU" or "host"."""
    peak: int
    total: int | None
    """That there is."""
    reserved: int | None
    kinds: tuple[Kind, ...]
    """Of the peak. The last is what is left of it."""


@dataclass(frozen=True)
class Course:
    """Memory over time, as a profiler saw it."""

    device: str
    points: tuple[tuple[float, int], ...]
    """Seconds and bytes."""


def rows(sides: Sequence[Side]) -> tuple[Held, ...]:
    held = (_held(side.label, side.trial.measurement) for side in sides if side.trial.measurement)
    return tuple(each for each in held if each is not None)


def courses(study: Study) -> tuple[Course, ...]:
    """Only where a profiler looked: `hotloop profile --depth kernel`."""
    seen = [each for trial in study.trials if trial.deep for each in trial.deep.memory]
    return tuple(
        Course(each.device, _thinned(list(zip(each.seconds, each.allocated, strict=True))))
        for each in seen
        if len(each.seconds) > 1
    )


def _held(label: str, measurement: Measurement) -> Held | None:
    memory = measurement.memory
    on_gpu, peak = bool(memory.device_peak_allocated), memory.peak
    if peak is None:
        return None
    return Held(
        label=label,
        where="GPU" if on_gpu else "host",
        peak=peak,
        total=memory.device_total if on_gpu else None,
        reserved=memory.device_peak_reserved if on_gpu else None,
        kinds=_kinds(measurement, peak, on_gpu),
    )


def _kinds(measurement: Measurement, peak: int, on_gpu: bool) -> tuple[Kind, ...]:
    counted = _counted(measurement)
    rest = peak - sum(size or 0 for size in counted)
    name = "activations and the rest" if on_gpu else "activations, data, Python and the rest"
    if measurement.memory.counts_children:
        name = "activations, data, Python, child processes and the rest"
    if None in counted:
        name += ", with what is unknown"
    weights, gradients, state = counted
    return (
        Kind("weights", weights),
        Kind("gradients", gradients),
        Kind("optimizer", state),
        # More was counted than was ever held at once: then what is left cannot be told.
        Kind(name, rest if rest >= 0 else None),
    )


def _counted(measurement: Measurement) -> tuple[int | None, int | None, int | None]:
    """As it was read at the end of the run; of studies that lack it, by what was found there."""
    memory, inventory = measurement.memory, measurement.inventory
    if memory.weights is not None:
        return memory.weights, memory.gradients, memory.optimizer
    return _weights(inventory), _weights(inventory, trainable=True), _state(inventory)


def _weights(inventory: Inventory, trainable: bool = False) -> int | None:
    """None where a model mixes number formats: how much is in which was not counted."""
    total = 0
    for model in inventory.models:
        sizes = {SIZES.get(name) for name in model.dtypes}
        size = sizes.pop() if len(sizes) == 1 else None
        if size is None:
            return None
        total += (model.trainable if trainable else model.parameters) * size
    return total if inventory.models else None


def _state(inventory: Inventory) -> int | None:
    """None for optimizers whose state depends on settings that were not noted."""
    formats = {name for model in inventory.models for name in model.dtypes}
    size = SIZES.get(next(iter(formats))) if len(formats) == 1 else None
    if size is None or not inventory.optimizers:
        return None
    kept = [STATES.get(one.name) for one in inventory.optimizers]
    if any(count is None for count in kept):
        return None
    pairs = zip(inventory.optimizers, kept, strict=True)
    return sum(one.parameters * (count or 0) * size for one, count in pairs)


def _thinned(points: list[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    """The lowest and the highest of every stretch, so that no peak is lost."""
    numbered = thinned([(at, float(size)) for at, (_, size) in enumerate(points)], MOST_POINTS)
    return tuple(points[at] for at, _ in numbered)
