"""The machine and all versions that a study depends on, as plain rows."""

from __future__ import annotations

from collections import Counter

from hotloop import units
from hotloop.measurement import Software
from hotloop.roof import Roof
from hotloop.study import Study

NAMES = {"float32": "FP32", "tf32": "TF32", "bfloat16": "BF16", "float16": "FP16"}


def rows(study: Study) -> tuple[tuple[str, str], ...]:
    """Label and text."""
    machine = study.machine
    cores = f"{machine.cores} cores"
    if machine.physical_cores is not None and machine.physical_cores < machine.cores:
        cores += f", {machine.physical_cores} of them physical"
    facts = [
        ("processor", f"{machine.cpu}, {cores}"),
        ("memory", "unknown" if machine.memory is None else units.size(machine.memory)),
        *(("GPU", text) for text in _gpus(study)),
        *((("driver", machine.driver),) if machine.driver else ()),
        ("system", machine.system),
        *_software(study),
        ("hotloop", f"{study.hotloop}, study format {study.version}"),
        *(_roof(study.roof) if study.roof else ()),
        ("made on", study.created),
    ]
    return tuple(facts)


def software(study: Study) -> Software | None:
    """Of the first trial that got far enough to say."""
    seen = (trial.measurement.software for trial in study.trials if trial.measurement)
    return next((each for each in seen if each.torch), None)


def _gpus(study: Study) -> list[str]:
    counts = Counter((gpu.name, gpu.memory) for gpu in study.machine.gpus)
    found = [
        f"{f'{count} × ' if count > 1 else ''}{name}, {units.size(memory)}"
        for (name, memory), count in counts.items()
    ]
    return found or ["none that was seen"]


def _software(study: Study) -> list[tuple[str, str]]:
    found = software(study)
    if found is None:
        return [("torch", "unknown: no run got so far")]
    device = "the CPU" if found.device == "cpu" else found.device
    return [("torch", f"{found.torch}, on {device}"), ("Python", found.python)]


def _roof(roof: Roof) -> list[tuple[str, str]]:
    rates = roof.matrix_flops or roof.cpu_matrix_flops
    bandwidth = roof.memory_bandwidth or roof.cpu_memory_bandwidth
    parts = [f"{NAMES.get(name, name)} {rate / 1e12:.3g} TFLOP/s" for name, rate in rates.items()]
    if bandwidth:
        parts.append(f"memory {units.throughput(bandwidth)}")
    if not parts:
        return []
    busy = ", beside other work" if roof.disturbed else ""
    return [("its roof", f"{' · '.join(parts)} (measured {roof.measured_on}{busy})")]
