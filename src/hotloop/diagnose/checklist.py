"""The nine points that everybody should check, each with what was seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hotloop import timeline
from hotloop.diagnose.base import LEAST_SHARE, Case, Finding
from hotloop.diagnose.call_sites import dearest_calls
from hotloop.diagnose.gpu_time import Idle, gpu_time
from hotloop.diagnose.peaks import operators, peaks, uses_tf32
from hotloop.diagnose.steady import steady_steps
from hotloop.diagnose.wording import at, percent, times
from hotloop.measurement import Kind

LOADER_RULES = ("waiting_for_data", "pageable_copies")
BATCH_RULES = ("tiny_batch", "microbatches", "short_last_batch")
VECTORISED_RULES = ("python_loop",)
INFERENCE_RULES = ("evaluation_with_gradients",)
PRECISION_RULES = ("double_precision", "fp32_matmul")
COMPILE_RULES = ("recompilation",)
HELPED_BY_COMPILING = ("launch_bound", "memory_bandwidth")


class Status(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    NOT_APPLICABLE = "not applicable"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Point:
    name: str
    status: Status
    evidence: str


def checklist(case: Case, findings: Sequence[Finding]) -> tuple[Point, ...]:
    """`findings`: what the rules found in this case."""
    found = {finding.rule: finding for finding in findings}
    return tuple(Point(name, *check(case, found)) for name, check in _CHECKS.items())


Answer = tuple[Status, str]
Found = dict[str, Finding]


def _device(case: Case, found: Found) -> Answer:
    if "model_on_cpu" in found:
        return Status.FAILED, found["model_on_cpu"].title
    if not case.gpus and not case.on_gpu:
        return Status.NOT_APPLICABLE, "no GPU is visible"
    if not case.measurement.inventory.models:
        return Status.UNKNOWN, "no model was seen"
    return Status.PASSED, f"the model is on {case.measurement.software.device}"


def _loader(case: Case, found: Found) -> Answer:
    if failed := _failed(found, LOADER_RULES):
        return failed
    if _is_drawn_elsewhere(case):
        return Status.UNKNOWN, "another thread loads: what a step waits for it is unaccounted for"
    loader = case.loader
    if loader is None:
        return Status.NOT_APPLICABLE, "the script draws its batches by hand"
    gpu = gpu_time(case)
    waited = gpu.share(Idle.DATA) if gpu else case.share("data")
    said = f"{percent(waited)} of a step waits for data, with {times(loader.workers, 'worker')}"
    # On a GPU without its record: a CPU that waits may have queued enough beforehand.
    if waited >= LEAST_SHARE:
        return (Status.UNKNOWN if case.on_gpu and gpu is None else Status.FAILED), said
    return Status.PASSED, said


def _is_drawn_elsewhere(case: Case) -> bool:
    """Whether steps are made on no loader's batches, and one was begun that handed out none."""
    events = case.measurement.events
    handed = {
        events.key[index]
        for index in timeline.all_of(events, Kind.DATA_END)
        if events.n[index] >= 0
    }
    is_idle = len(handed) < len(case.measurement.inventory.loaders)
    return is_idle and not any(step.batches for step in steady_steps(case))


def _batch(case: Case, found: Found) -> Answer:
    if failed := _failed(found, BATCH_RULES):
        return failed
    rate = case.figures.samples_per_second
    if rate is None:
        return Status.UNKNOWN, "samples could not be counted"
    samples = rate * case.figures.step.mean
    if case.inspection is None:
        return Status.UNKNOWN, f"{times(samples, 'sample')} a step; it was not looked into"
    return Status.PASSED, f"{times(samples, 'sample')} a step keep the device occupied"


def _precision(case: Case, found: Found) -> Answer:
    if failed := _failed(found, PRECISION_RULES):
        return failed
    inventory = case.measurement.inventory
    lower = {inventory.precision.autocast, *(d for m in inventory.models for d in m.dtypes)}
    for name in ("bfloat16", "float16"):
        if name in lower:
            return Status.PASSED, f"it computes in {name}"
    if uses_tf32(case):
        return Status.PASSED, "it computes in TF32"
    rates = peaks(case)
    if not case.on_gpu and "float32" in rates and rates.get("bfloat16", 0) <= rates["float32"]:
        return Status.NOT_APPLICABLE, "this CPU is no faster in a lower precision"
    counted = operators(case)
    if counted is None or not rates:
        return Status.UNKNOWN, "what the job computes, or the machine can, was not measured"
    if counted.without_formula:
        most = max(counted.without_formula, key=lambda name: counted.without_formula[name])
        return Status.UNKNOWN, f"what {most} computes is not counted"
    return Status.PASSED, "products in FP32 take too little of a step to matter"


def _syncs(case: Case, found: Found) -> Answer:
    if not case.on_gpu:
        return Status.NOT_APPLICABLE, "a CPU waits for nobody"
    finding = found.get("synchronisation")
    if finding is not None:
        return (Status.FAILED if finding.is_limit else Status.UNKNOWN), finding.title
    gpu = gpu_time(case)
    if gpu is None or case.inspection is None:
        return Status.UNKNOWN, "waits were not looked for"
    lost = sum(gpu.by_wait.values()) / gpu.seconds if gpu.seconds else 0.0
    return Status.PASSED, f"waiting for values costs {percent(lost)} of a step"


def _vectorised(case: Case, found: Found) -> Answer:
    if failed := _failed(found, VECTORISED_RULES):
        return failed
    counted = operators(case)
    if counted is None:
        return Status.UNKNOWN, "operators were not counted"
    most = max((line.operators for line in counted.lines), default=0) / counted.steps
    return Status.PASSED, f"no line queues more than {times(most, 'operator')} a step"


def _inference(case: Case, found: Found) -> Answer:
    if failed := _failed(found, INFERENCE_RULES):
        return failed
    every = case.inspection.evaluations_with_gradients if case.inspection else []
    if passes := [one for one in every if not one.training]:
        where = "".join(f": {at(line)}" for line in dearest_calls(passes)[:1])
        return Status.FAILED, f"a model in evaluation mode runs with gradients on{where}"
    if Kind.NO_GRAD_BEGIN in case.measurement.events.kind:
        return Status.PASSED, "evaluation runs without gradients"
    if case.inspection is None:
        return Status.UNKNOWN, "no evaluation was seen, and it was not looked into"
    if any(step.evaluation for step in timeline.steps(case.measurement.events)):
        return Status.UNKNOWN, "nobody saw whether evaluation runs with gradients on"
    return Status.NOT_APPLICABLE, "no evaluation was seen"


def _compile(case: Case, found: Found) -> Answer:
    if failed := _failed(found, COMPILE_RULES):
        return failed
    if any(model.compiled for model in case.measurement.inventory.models):
        breaks = sum(case.inspection.graph_breaks.values()) if case.inspection else 0
        return Status.PASSED, f"the model is compiled, with {times(breaks, 'graph break')}"
    if failed := _failed(found, HELPED_BY_COMPILING):
        return failed
    if gpu_time(case) is None:
        return Status.UNKNOWN, "it is not compiled; only a trial can tell whether that would help"
    return Status.NOT_APPLICABLE, "it is not compiled, and little could be won by that"


def _profiled(case: Case, found: Found) -> Answer:
    timed = times(case.figures.step.count, "step")
    if case.inspection is None:
        return Status.PASSED, f"{timed} were timed; it was not looked into"
    return Status.PASSED, f"{timed} were timed and {case.inspection.steps} looked into"


def _failed(found: Found, rules: Sequence[str]) -> Answer | None:
    titles = [found[rule].title for rule in rules if rule in found and found[rule].is_limit]
    return (Status.FAILED, titles[0]) if titles else None


_CHECKS: dict[str, Callable[[Case, Found], Answer]] = {
    "device placement": _device,
    "data loading": _loader,
    "batch size": _batch,
    "precision": _precision,
    "synchronisation": _syncs,
    "vectorised": _vectorised,
    "inference mode": _inference,
    "compiled": _compile,
    "profiled": _profiled,
}
