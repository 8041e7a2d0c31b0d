"""The job's numbers: what it computes and moves, and how near that is to what the machine can do.

What was not seen is None, never zero. Times are those of the timed trial; what a step computes was
counted in another.
"""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.datasheets import datasheet
from hotloop.diagnose.base import Case
from hotloop.diagnose.footprint import WORLD_AVERAGE, Footprint, footprint
from hotloop.diagnose.gpu_time import gpu_time
from hotloop.diagnose.peaks import bandwidth, ideal_seconds, operators, peaks
from hotloop.diagnose.steady import steady_spans
from hotloop.inspection import Allocator
from hotloop.measurement import Kind

TRAINING_TARGET = 0.5
INFERENCE_TARGET = 0.7
"""Of the peak: what is usually called good. Backward passes and optimizers cost the difference."""


@dataclass(frozen=True)
class Numbers:
    flops_step: float | None = None
    flops_sample: float | None = None
    flops_are_lower_bound: bool = False
    """Some heavy operators have no formula. Shares of the peak are lower bounds then, too."""
    flops_second: float | None = None
    mfu_measured: float | None = None
    """The time its products would take at the measured roof, over the time of a step."""
    mfu_datasheet: float | None = None
    """The same against what the maker's data sheet promises."""
    mfu_target: float = TRAINING_TARGET
    bytes_step: float | None = None
    """Read and written by operators, as if nothing were fused or cached: an upper bound."""
    bandwidth_utilisation: float | None = None
    intensity: float | None = None
    """FLOPs for every byte."""
    kernels_step: float | None = None
    gpu_busy: float | None = None
    """Share of the time in which something ran on the GPU."""
    host_to_device_bytes_step: float | None = None
    allocator_retries: int | None = None
    fragmentation: float | None = None
    """Share of the reserved memory that nothing uses."""
    graph_breaks: int | None = None
    """None: nothing is compiled."""
    scaler_skips: int | None = None
    footprint: Footprint | None = None


def numbers(case: Case, grams_per_kwh: float = WORLD_AVERAGE) -> Numbers:
    step = case.figures.step.mean
    counted = operators(case)
    flops = sum(counted.flops.values()) / counted.steps if counted and counted.flops else None
    moved = counted.bytes / counted.steps if counted and counted.bytes else None
    gpu = gpu_time(case)
    look, allocator = case.inspection, case.inspection.allocator if case.inspection else None
    return Numbers(
        flops_step=flops,
        flops_sample=_over(flops, _samples_a_step(case)),
        flops_are_lower_bound=bool(counted and counted.without_formula),
        flops_second=_over(flops, step),
        mfu_measured=_over(ideal_seconds(case, peaks(case)), step),
        mfu_datasheet=_over(_on_paper(case), step),
        mfu_target=TRAINING_TARGET if _trains(case) else INFERENCE_TARGET,
        bytes_step=moved,
        bandwidth_utilisation=_over(_over(moved, bandwidth(case)), step),
        intensity=_over(flops, moved),
        kernels_step=gpu.kernels / gpu.steps if gpu else None,
        gpu_busy=gpu.busy_share if gpu else None,
        host_to_device_bytes_step=_copied(case),
        allocator_retries=allocator.retries if allocator else None,
        fragmentation=_fragmentation(allocator) if allocator else None,
        graph_breaks=sum(look.graph_breaks.values()) if look and _is_compiled(case) else None,
        scaler_skips=look.scaler_skips if look else None,
        footprint=footprint(case, grams_per_kwh),
    )


def copied_a_step(case: Case) -> float:
    """Bytes from host to device, by the copies that the script itself asks for."""
    copies = steady_spans(case, Kind.COPY_BEGIN)
    return sum(max(copy.n, 0) for copy in copies) / case.figures.step.count


def _copied(case: Case) -> float | None:
    return copied_a_step(case) if case.on_gpu else None


def _on_paper(case: Case) -> float | None:
    sheet = datasheet(case.measurement.software.device) if case.on_gpu else None
    return ideal_seconds(case, sheet.matrix_flops) if sheet else None


def _fragmentation(allocator: Allocator) -> float | None:
    """Of what is reserved, never in use at once: between two steps most of it is always free."""
    most = allocator.peak_allocated or allocator.allocated
    return _over(float(max(allocator.reserved - most, 0)), float(allocator.reserved))


def _samples_a_step(case: Case) -> float | None:
    rate = case.figures.samples_per_second
    return rate * case.figures.step.mean if rate is not None else None


def _trains(case: Case) -> bool:
    kinds = case.measurement.events.kind
    return Kind.BACKWARD_BEGIN in kinds or Kind.OPTIMIZER_BEGIN in kinds


def _is_compiled(case: Case) -> bool:
    return any(model.compiled for model in case.measurement.inventory.models)


def _over(value: float | None, by: float | None) -> float | None:
    return value / by if value is not None and by else None
