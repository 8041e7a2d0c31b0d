"""A study that has everything a report can show. Recorded on a GPU; its proof is made up."""

from __future__ import annotations

from dataclasses import replace

from hotloop.depth import DepthReport, MemoryTimeline, OperatorRow, OperatorTable
from hotloop.diagnose.base import Effort, Finding
from hotloop.diagnose.checklist import Point, Status
from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.diagnose.numbers import Numbers
from hotloop.inspection import Frame, Inspection, Kernels, StepMemory
from hotloop.levers.base import Receipt
from hotloop.roof import Roof
from hotloop.search.batch_sizes import Curve, SizePoint
from hotloop.search.parts import Contribution
from hotloop.search.proof import Proof
from hotloop.study import Refused, Soaked, Study
from hotloop.trial.trial import State, Trial
from tests.builders import trial
from tests.report.studies import numbered, ratio
from tests.test_recordings import RESNET, recorded

ROUNDS = 5
GAINS = (1.3, 1.2, 1.9, 1.1)
"""Of each optimisation in the plan."""


def rich() -> Study:
    record = recorded(RESNET)
    before, after = record.trials[0], record.trials[6]
    plan = after.plan
    pairs = zip(plan.levers, GAINS, strict=True)
    contributions = tuple(Contribution(one.lever, ratio(gain, 1.0)) for one, gain in pairs)
    rounds = [replace(each, purpose="proof") for _ in range(ROUNDS) for each in (before, after)]
    crashed = trial(
        purpose="screen", state=State.CRASHED, reason="It failed: RuntimeError.", measurement=None
    )
    assert record.found is not None
    found = replace(
        record.found,
        plan=plan,
        proof=Proof(plan, ratio(7.43, 2.75), contributions, (), 0.01),
        verdict="2.71× faster, and the same training.",
        refused=(
            Refused("tf32", "1.004× is less than the 1.020× that would count", True, 65.0),
            Refused("cudnn_benchmark", "It failed: RuntimeError.", True, 25.0),
            Refused("threads", "nothing that was found speaks for it", True, 12.0),
            Refused("pin_memory", "the script draws its batches by hand", False),
        ),
        soaked=Soaked(True, "", ("a second epoch",), ("evaluation",)),
        sizes=Curve(
            (
                SizePoint(32, 4300.0, 2**30),
                SizePoint(64, 7900.0, 2**31),
                SizePoint(128, 9800.0, 2**32),
                SizePoint(256, 9900.0, 2**33),
                SizePoint(512, None, None, "out of memory"),
            )
        ),
        warnings=("Another process is using the GPU.",),
    )
    receipts = (Receipt("compile", True, evidence={"graphs": 1}),)
    trials = (*record.trials, *rounds, crashed, _looked_into(before), _deep())
    trials = (replace(trials[0], receipts=receipts), *trials[1:])
    return replace(
        record, found=found, trials=numbered(*trials), roof=_roof(), diagnosis=_diagnosis()
    )


def _looked_into(timed: Trial) -> Trial:
    """Kernels with gaps between them, during four of its steps."""
    assert timed.measurement is not None
    times = timed.measurement.events.time_ns
    begin, end = times[400], times[440]
    starts = list(range(begin, end, 100_000))
    kernels = Kernels(
        steps=4,
        begin_ns=begin,
        end_ns=end,
        names=["sgemm", "elementwise_kernel", "Memcpy HtoD"],
        name=[number % 3 for number in range(len(starts))],
        start_ns=starts,
        duration_ns=[60_000] * len(starts),
    )
    seen = Inspection(steps=4, kernels=kernels, step_memory=step_memory())
    return replace(timed, purpose="look", inspection=seen)


def step_memory(device: str = "cuda:0") -> StepMemory:
    """Activations rise in the forward pass and go as gradients come."""
    unit, count = 10**7, 20
    phases = ["data", *["forward"] * count, *["backward"] * count, *["optimizer"] * count]
    rising = [0, *range(count), *range(count, 0, -1), *[0] * count]
    gradients = [0] * (count + 1) + [4 * at // count for at in range(count)] + [4] * count
    moments = zip(rising, gradients, strict=True)
    return StepMemory(
        device=device,
        operators=5 * len(phases),
        phase=phases,
        operator=[5 * at for at in range(len(phases))],
        weights=[4 * unit] * len(phases),
        gradients=[unit * size for size in gradients],
        optimizer=[4 * unit] * len(phases),
        activations=[unit * size for size in rising],
        total=[unit * (4 + 4 + 2 + each + gradient) for each, gradient in moments],
    )


def _deep() -> Trial:
    sizes = [10**9 + (number % 20) * 10**7 for number in range(60)]
    line = MemoryTimeline("cuda:0", [number / 1000 for number in range(60)], sizes)
    rows = [OperatorRow("aten::mm", "[32, 64] [64, 8]", 8, 0.001, 0.002, 0.003, 0.003)]
    deep = DepthReport("kernel", operators=OperatorTable(4, rows, []), memory=[line])
    return trial(purpose="depth kernel", deep=deep)


def _roof() -> Roof:
    return Roof(
        device="NVIDIA H200",
        measured_on="2026-11-01",
        matrix_flops={"float32": 51e12, "tf32": 389e12, "bfloat16": 742e12, "float16": 711e12},
        memory_bandwidth=4.22e12,
    )


def _diagnosis() -> Diagnosis:
    finding = Finding(
        "launch_bound",
        "The GPU idles 41% of a step: work is queued more slowly than it is done",
        0.41,
        "Compile the model with CUDA graphs.",
        Effort.SETTING,
        ("612 kernels a step, of 9.3 µs in the median",),
        (Frame("./resnet18.py", 41, "main", True, "loss = criterion(model(images), labels)"),),
        ("compile",),
    )
    return Diagnosis(
        verdict="The GPU idles 41% of a step: with that mended the job would be 1.7× as fast.",
        findings=(finding,),
        checklist=(
            Point("device placement", Status.PASSED, "the model is on NVIDIA H200"),
            Point("precision", Status.FAILED, "products in FP32 take 30% of a step"),
            Point("compiled", Status.UNKNOWN, "it was not looked at"),
            Point("data loading", Status.NOT_APPLICABLE, "batches are drawn by hand"),
        ),
        numbers=Numbers(flops_step=3.5e11, flops_second=4.7e13, mfu_measured=0.12, intensity=58.0),
    )
