"""How long a job's arithmetic and its memory traffic would take at the roof of the machine."""

from __future__ import annotations

from collections.abc import Mapping

from hotloop.diagnose.base import Case
from hotloop.inspection import Operators


def operators(case: Case) -> Operators | None:
    """None where none were counted."""
    found = case.inspection.operators if case.inspection else None
    return found if found is not None and found.steps else None


def peaks(case: Case) -> Mapping[str, float]:
    """Measured FLOP/s by format, of the device that the job runs on."""
    if case.roof is None:
        return {}
    return case.roof.matrix_flops if case.on_gpu else case.roof.cpu_matrix_flops


def bandwidth(case: Case) -> float | None:
    if case.roof is None:
        return None
    return case.roof.memory_bandwidth if case.on_gpu else case.roof.cpu_memory_bandwidth


def computed_in(case: Case, operands: str) -> str:
    """The format that products of such operands are really computed in."""
    return "tf32" if operands == "float32" and uses_tf32(case) else operands


def uses_tf32(case: Case) -> bool:
    """cuDNN has a switch of its own, which is on unless a script turns it off.

    Whatever the job computes more with decides.
    """
    precision = case.measurement.inventory.precision
    if not case.on_gpu or precision.autocast in ("bfloat16", "float16"):
        return False
    return precision.tf32_cudnn if _mostly_convolves(case) else precision.tf32_matmul


def ideal_seconds(case: Case, rates: Mapping[str, float]) -> float | None:
    """For the products of one step at these rates. None where a format's rate is not known."""
    found = operators(case)
    if found is None or not found.flops:
        return None
    total = 0.0
    for operands, flops in found.flops.items():
        rate = rates.get(computed_in(case, operands))
        if rate is None and flops:
            return None
        total += flops / rate if rate else 0.0
    return total / found.steps


def _mostly_convolves(case: Case) -> bool:
    found = operators(case)
    if found is None:
        return any(model.convolves for model in case.measurement.inventory.models)
    convolved = found.convolution_flops.get("float32", 0.0)
    return convolved > found.flops.get("float32", 0.0) / 2
