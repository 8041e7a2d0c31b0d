"""A job's numbers as plain rows: what it computes and moves, against what the machine can do."""

from __future__ import annotations

from hotloop import units
from hotloop.diagnose.footprint import Footprint
from hotloop.diagnose.numbers import Numbers

UNKNOWN = "unknown"


def number_rows(numbers: Numbers, on_gpu: bool) -> tuple[tuple[str, str], ...]:
    """Label and text. What is not known is said to be."""
    rows = [("compute", _compute(numbers)), ("traffic", _traffic(numbers))]
    if on_gpu:
        rows += [("GPU", _gpu(numbers)), ("energy", _energy(numbers.footprint))]
    if numbers.graph_breaks is not None:
        rows.append(("compiled", f"{numbers.graph_breaks} graph breaks"))
    if numbers.scaler_skips is not None:
        rows.append(("scaler", f"{numbers.scaler_skips} steps left out"))
    return tuple(rows)


def _compute(numbers: Numbers) -> str:
    if numbers.flops_step is None or numbers.flops_second is None:
        return f"{UNKNOWN} FLOPs"
    said = f"{_flop(numbers.flops_step)} a step, {_flop(numbers.flops_second)}/s"
    if numbers.flops_are_lower_bound:
        # What was left out may be most of it, and a share of the rest would say nothing.
        return f"at least {said}; some operators could not be counted"
    parts = [said]
    measured, promised = _share(numbers.mfu_measured), _share(numbers.mfu_datasheet)
    parts.append(f"{measured} of what was measured here, goal {numbers.mfu_target:.0%}")
    if numbers.mfu_datasheet is not None:
        parts.append(f"{promised} of the data sheet's peak")
    return " · ".join(parts)


def _traffic(numbers: Numbers) -> str:
    if numbers.bytes_step is None:
        return f"{UNKNOWN} bytes"
    intensity = UNKNOWN if numbers.intensity is None else f"{numbers.intensity:.3g}"
    parts = [
        f"up to {units.size(round(numbers.bytes_step))} a step",
        f"{_share(numbers.bandwidth_utilisation)} of the memory's bandwidth",
        f"{intensity} FLOP a byte",
    ]
    if numbers.host_to_device_bytes_step is not None:
        copied = units.size(round(numbers.host_to_device_bytes_step))
        parts.append(f"{copied} copied to the GPU")
    return " · ".join(parts)


def _gpu(numbers: Numbers) -> str:
    kernels = UNKNOWN if numbers.kernels_step is None else f"{numbers.kernels_step:.0f}"
    parts = [f"busy {_share(numbers.gpu_busy)} of the time", f"{kernels} kernels a step"]
    if numbers.allocator_retries is not None:
        parts.append(f"{numbers.allocator_retries} allocator retries")
    if numbers.fragmentation is not None:
        parts.append(f"{numbers.fragmentation:.0%} of the reserved memory unused")
    return " · ".join(parts)


def _energy(footprint: Footprint | None) -> str:
    if footprint is None:
        return UNKNOWN
    parts = [f"{footprint.watts:.0f} W", f"{footprint.joules_step:.3g} J a step"]
    if footprint.joules_sample is not None:
        parts.append(f"{footprint.joules_sample:.3g} J a sample")
    if footprint.kwh_epoch is not None and footprint.co2_epoch is not None:
        parts.append(
            f"an epoch {footprint.kwh_epoch:.3g} kWh, about {footprint.co2_epoch:.3g} g CO₂"
            f" (estimated, at {footprint.grams_per_kwh:g} g a kWh)"
        )
    return " · ".join(parts)


def _share(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.0%}"


def _flop(value: float) -> str:
    for factor, unit in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= factor:
            return f"{value / factor:.3g} {unit}FLOP"
    return f"{value:.3g} FLOP"
