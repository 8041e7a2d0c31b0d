"""A GPU is there, and the model, or a part of it, is not on it."""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.gpu_time import QUEUEING, gpu_time
from hotloop.diagnose.heavy_lines import by_flops, heavy_lines
from hotloop.diagnose.peaks import operators
from hotloop.diagnose.wording import percent, times
from hotloop.measurement import ModelSeen

MOST = 0.995
"""That can be won: a step takes some time on any device."""
REACHED = 0.25
"""Of a GPU's peak, by models of ordinary size in plain float32 and TF32."""
USUAL_LAUNCH = 6e-6
"""Seconds for launching a kernel, where the roof does not say."""
LAUNCHES = 3
"""What an operator takes the CPU in a training, its backward pass and Python included, compared
with a bare launch. So it was seen of networks that are limited by that."""


def model_on_cpu(case: Case) -> Finding | None:
    if not case.gpus:
        return None
    models = [model for model in case.measurement.inventory.models if model.parameters]
    if not case.on_gpu:
        return _all_of_it(case, models)
    partly = [model for model in models if "cpu" in model.devices]
    return _part_of_it(case, partly) if partly else None


def _all_of_it(case: Case, models: list[ModelSeen]) -> Finding | None:
    computing = case.share("forward", "backward", "optimizer")
    if not models or computing < LEAST_SHARE:
        return None
    step = case.figures.step.mean
    after = _on_the_gpu(case)
    share = max(computing - (after or 0.0) / step, 0.0)
    said = "at least" if after is None else "about"
    return Finding(
        rule="model_on_cpu",
        title=f"The model trains on the CPU, beside {times(case.gpus, 'idle GPU')}",
        share=min(share, MOST),
        remedy='Move the model and every batch to the GPU: .to("cuda").',
        effort=Effort.LINES,
        evidence=(
            f"{models[0].name} has its parameters on the CPU",
            f"the model and its optimizer take {percent(computing)} of a step",
            *([f"on this GPU they would take {said} {after * 1e3:.2f} ms"] if after else []),
        ),
        places=heavy_lines(case, by_flops),
    )


def _on_the_gpu(case: Case) -> float | None:
    """Seconds for what a step computes: arithmetic or queueing, whichever takes longer."""
    counted, roof = operators(case), case.roof
    if counted is None or roof is None or "float32" not in roof.matrix_flops:
        return None
    convolves = any(model.convolves for model in case.measurement.inventory.models)
    rate = roof.matrix_flops.get("tf32", 0.0) if convolves else 0.0
    arithmetic = sum(counted.flops.values()) / max(rate, roof.matrix_flops["float32"]) / REACHED
    launch = roof.launch_seconds or USUAL_LAUNCH
    return max(arithmetic, counted.count * launch * LAUNCHES) / counted.steps


def _part_of_it(case: Case, partly: list[ModelSeen]) -> Finding | None:
    """What runs on the CPU keeps the GPU waiting; how much of its idling that is, is not known."""
    gpu = gpu_time(case)
    share = gpu.share(*QUEUEING) if gpu else 0.0
    return Finding(
        rule="model_on_cpu",
        title=f"A part of {partly[0].name} is on the CPU",
        share=share,
        remedy="Move the whole model to the GPU, also what is added to it later.",
        effort=Effort.LINES,
        evidence=(
            f"its parameters are on {' and '.join(partly[0].devices)}",
            *([f"the GPU has nothing to do for {percent(share)} of a step"] if gpu else []),
        ),
        cause="partly",
        is_limit=share >= LEAST_SHARE,
    )
