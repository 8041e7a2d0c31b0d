"""What was recorded on a GPU, and on a busy machine, judged again: that needs neither."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest

from hotloop import codec
from hotloop.equivalence.judge import Equivalence, Witnesses, factor_for, judge
from hotloop.figures import figures
from hotloop.measurement import Measurement
from hotloop.search.compare import Pair, compare, self_comparison_floor
from hotloop.study import Options, Study
from hotloop.timeline import Phase
from hotloop.trial.trial import Trial
from hotloop.workshop.mantissas import own_mantissa
from hotloop.workshop.promising import promising
from tests.sources import ROOT

RESNET, GPT2 = "resnet18-h200", "gpt2-h200"
BOTH = pytest.mark.parametrize("name", [RESNET, GPT2])


def recorded(name: str) -> Study:
    path = Path(__file__).parent / "recordings" / f"{name}.json.gz"
    return codec.decode(gzip.decompress(path.read_bytes()), Study)


def optimized(name: str) -> Study:
    """The study of a whole search."""
    path = ROOT / "benchmarks" / "results" / f"optimize-{name}.study.json.gz"
    return codec.decode(gzip.decompress(path.read_bytes()), Study)


def of_purpose(study: Study, purpose: str) -> list[Trial]:
    return [trial for trial in study.trials if trial.purpose == purpose]


def baseline(study: Study) -> Measurement:
    measurement = of_purpose(study, "baseline")[0].measurement
    assert measurement is not None
    return measurement


def judged(study: Study, candidate: Trial, bits: int) -> Equivalence:
    """As if the candidate claimed to round no coarser than this."""
    witnesses = Witnesses(
        of_purpose(study, "reference")[0],
        of_purpose(study, f"yardstick {bits}")[0],
        tuple(of_purpose(study, "reseeded 1") + of_purpose(study, "reseeded 2")),
    )
    return judge(candidate, witnesses, factor_for(bits))


@BOTH
def test_phases_add_up_to_the_step_on_a_gpu_too(name: str) -> None:
    found = figures(baseline(recorded(name)))
    assert found is not None
    assert sum(phase.seconds for phase in found.phases) == pytest.approx(found.step.mean)
    spans = {phase.phase: phase.seconds for phase in found.gpu_phases}
    assert spans[Phase.BACKWARD] > spans[Phase.OPTIMIZER] > 0
    assert sum(phase.share for phase in found.gpu_phases) == pytest.approx(1.0)
    assert sum(spans.values()) < 1.2 * found.step.mean


@BOTH
def test_a_job_that_allows_tf32_is_measured_by_its_rounding(name: str) -> None:
    assert own_mantissa(baseline(recorded(name))) == 10


def test_what_is_worth_trying_depends_on_what_the_script_has() -> None:
    expected = {
        RESNET: {
            "tf32",
            "bf16",
            "compile",
            "channels_last",
            "cudnn_benchmark",
            "fused_optimizer",
            "model_graph",
            "update_graph",
        },
        # It has turned TF32 on, and fused its optimizer, by itself.
        GPT2: {"bf16", "compile", "model_graph", "update_graph"},
    }
    for name, levers in expected.items():
        measurement = baseline(recorded(name))
        found = figures(measurement)
        assert found is not None
        candidates, refused = promising(measurement, found, 16, Options())
        assert {one.lever for one in candidates} == levers
        assert all(one.reason for one in refused)


@BOTH
def test_optimisations_of_the_same_arithmetic_are_shown_to_be(name: str) -> None:
    study = recorded(name)
    exact = next(
        one
        for one in of_purpose(study, "candidate")
        if "bf16" not in [chosen.lever for chosen in one.plan.levers]
    )
    assert judged(study, exact, 10).same


@BOTH
def test_bf16_is_the_same_training_only_by_the_rounding_it_declares(name: str) -> None:
    study = recorded(name)
    lower = next(
        one
        for one in of_purpose(study, "candidate")
        if "bf16" in [chosen.lever for chosen in one.plan.levers]
    )
    assert judged(study, lower, 7).same
    if name == GPT2:  # deep enough that its updates tell seven bits from ten
        held_to_more = judged(study, lower, 10)
        assert not held_to_more.same
        assert held_to_more.reasons[0].startswith("arithmetic: ")


def test_an_update_made_of_rounding_is_no_difference_in_the_training() -> None:
    """Fused attention rounds the gradient of its keys' bias otherwise, which is nothing else."""
    study = optimized("gpt2")
    exact, whole = of_purpose(study, "candidate")
    assert "bf16" not in [one.lever for one in exact.plan.levers]
    assert judged(study, exact, 23).same
    assert judged(study, whole, 7).same
    assert whole.evidence is not None
    blind = [replace(one, unsettled=0.0) for one in whole.evidence.differences]
    taken = replace(whole, evidence=replace(whole.evidence, differences=blind))
    (said,) = judged(study, taken, 7).reasons
    assert "attention.attend.bias" in said


def test_another_job_is_not_the_same_training() -> None:
    candidate = of_purpose(recorded(GPT2), "candidate")[0]
    assert not judged(recorded(RESNET), candidate, 7).same


def test_recorded_noise_of_a_busy_machine_claims_no_gain() -> None:
    """Five hundred processes of one job, in the order they ran, cut into comparisons anew."""
    path = ROOT / "benchmarks" / "results" / "self-comparison-cpu.json"
    comparisons = json.loads(path.read_text(encoding="utf-8"))["comparisons"]
    seconds = [
        pair[side]
        for one in comparisons
        for place, pair in enumerate(one["pairs"])
        for side in (("baseline", "candidate") if place % 2 else ("candidate", "baseline"))
    ]
    draw = random.Random(0)
    claims = 0
    for _ in range(200):
        start = draw.randrange(len(seconds) - 10)
        window = seconds[start : start + 10]
        pairs = [
            Pair(*(window[i : i + 2] if i % 4 else window[i : i + 2][::-1]))
            for i in range(0, 10, 2)
        ]
        floor = self_comparison_floor([pair.baseline for pair in pairs])
        claims += compare(pairs, floor).faster
    assert claims <= 2


def test_what_could_be_won_is_not_what_the_cpu_waits_for() -> None:
    """A script that copies its batch the plain way waits there for all of the step before."""
    study = recorded("gpt2-by-hand-h200")
    measurement, looked = baseline(study), study.trials[1]
    found = figures(measurement)
    assert found is not None
    assert {one.phase: one.share for one in found.phases}["copy"] > 0.8
    assert {one.phase: one.share for one in found.gpu_phases}["copy"] < 0.01
    candidates, _ = promising(measurement, found, 16, Options(), study.diagnosis, looked.inspection)
    at_once = [one.lever for one in candidates if one.worth_from <= 1]
    assert {"bf16", "compile", "fused_attention"} <= set(at_once)
    later = {one.lever: one.worth_from for one in candidates if one.worth_from > 1}
    assert later["compile_loss"] < 2 < later["fused_optimizer"] < 10
    assert not {"pin_memory", "device_prefetch"} & {one.lever for one in candidates}
