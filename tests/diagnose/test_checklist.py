from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.base import Case, Effort, Finding
from hotloop.diagnose.checklist import Point, Status, checklist
from hotloop.inspection import Inspection, Pass
from hotloop.measurement import Kind, Precision
from hotloop.roof import Roof
from tests.builders import loader, model
from tests.diagnose.gpu_making import PRODUCT, Scene, blind, case, look_at, operators, script
from tests.diagnose.making import case as threaded
from tests.diagnose.making import hand_drawn, users

NAMES = (
    "device placement",
    "data loading",
    "batch size",
    "precision",
    "synchronisation",
    "vectorised",
    "inference mode",
    "compiled",
    "profiled",
)


def busy(scene: Scene) -> None:
    scene.data(0.01).train(lambda: scene.run(PRODUCT, 4), lambda: scene.run(PRODUCT, 6)).step()


def tuned() -> Case:
    made = look_at(case(busy), operators=operators(flops={"bfloat16": 1e12}))
    compiled = [model(devices=["cuda:0"], compiled=True)]
    return script(made, models=compiled, precision=Precision(autocast="bfloat16"))


def on_cpu(made: Case) -> Case:
    software = replace(made.measurement.software, device="cpu")
    measured = replace(made.measurement, software=software)
    roof = Roof(cpu_matrix_flops={"float32": 1e12})
    return replace(blind(made), measurement=measured, roof=roof, gpus=0)


def found(rule: str, is_limit: bool = True) -> Finding:
    return Finding(rule, f"because of {rule}", 0.3, "", Effort.LINES, is_limit=is_limit)


def point(name: str, made: Case, *findings: Finding) -> Point:
    return next(each for each in checklist(made, findings) if each.name == name)


def test_nine_points_each_with_evidence() -> None:
    for made in (
        tuned(),
        on_cpu(tuned()),
        replace(tuned(), inspection=None, looked=None, roof=None),
    ):
        points = checklist(made, ())
        assert tuple(each.name for each in points) == NAMES
        assert all(each.evidence for each in points)


def test_a_well_tuned_job_fails_nothing() -> None:
    statuses = {each.name: each.status for each in checklist(tuned(), ())}
    assert Status.FAILED not in statuses.values()
    assert Status.UNKNOWN not in statuses.values()
    assert statuses["inference mode"] is Status.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        ("model_on_cpu", "device placement"),
        ("waiting_for_data", "data loading"),
        ("pageable_copies", "data loading"),
        ("tiny_batch", "batch size"),
        ("microbatches", "batch size"),
        ("fp32_matmul", "precision"),
        ("synchronisation", "synchronisation"),
        ("python_loop", "vectorised"),
        ("evaluation_with_gradients", "inference mode"),
        ("recompilation", "compiled"),
    ],
)
def test_a_finding_fails_its_point_alone(rule: str, name: str) -> None:
    points = checklist(tuned(), (found(rule),))
    failed = [each for each in points if each.status is Status.FAILED]
    assert failed == [Point(name, Status.FAILED, f"because of {rule}")]


def test_what_compiling_would_help_fails_where_nothing_is_compiled() -> None:
    eager = script(tuned(), models=[model(devices=["cuda:0"])])
    assert point("compiled", eager, found("launch_bound")).status is Status.FAILED
    assert point("compiled", eager).status is Status.NOT_APPLICABLE
    assert point("compiled", tuned(), found("launch_bound")).status is Status.PASSED
    assert point("compiled", blind(eager)).status is Status.UNKNOWN


def test_on_a_cpu_some_points_mean_nothing() -> None:
    made = script(on_cpu(tuned()), precision=Precision())
    for name in ("device placement", "precision", "synchronisation"):
        assert point(name, made).status is Status.NOT_APPLICABLE


def test_what_was_not_looked_into_is_unknown() -> None:
    made = script(
        replace(tuned(), inspection=None, looked=None, roof=None),
        precision=Precision(),
        models=[model(devices=["cuda:0"])],
    )
    unknown = {each.name for each in checklist(made, ()) if each.status is Status.UNKNOWN}
    assert unknown == set(NAMES) - {"device placement", "data loading", "profiled"}


class TestLoading:
    def test_a_gpu_that_does_not_idle_does_not_wait(self) -> None:
        """The CPU waits for long, but has queued enough beforehand."""

        def ahead(scene: Scene) -> None:
            scene.data(5).train(lambda: scene.run(PRODUCT, 4), lambda: scene.run(PRODUCT, 6)).step()

        made = case(ahead)
        assert made.share("data") > 0.4
        assert point("data loading", made).status is Status.PASSED
        assert point("data loading", blind(made)).status is Status.UNKNOWN

    def test_a_script_without_a_loader(self) -> None:
        made = replace(tuned(), loader=None)
        assert point("data loading", made).status is Status.NOT_APPLICABLE

    @pytest.mark.parametrize("validates", [False, True])
    def test_a_thread_that_loads_ahead_hides_what_is_waited_for(self, validates: bool) -> None:
        log = hand_drawn(lambda log: log.wait(60).forward(9, 8).backward(8).optimizer(3))
        if validates:
            log.data(5, n=4, key=1).no_grad(5).forward(9, 8).backward(8).optimizer(3)
        loaders = [loader(), loader()] if validates else [loader()]
        said = point("data loading", threaded(log, loaders=loaders))
        assert said.status is Status.UNKNOWN
        assert "another thread loads" in said.evidence

    def test_says_how_many_workers(self) -> None:
        made = replace(tuned(), loader=loader(workers=1))
        assert "1 worker" in point("data loading", made).evidence


class TestInference:
    def test_evaluation_without_gradients(self) -> None:
        made = tuned()
        made.measurement.events.kind[0] = Kind.NO_GRAD_BEGIN
        assert point("inference mode", made).status is Status.PASSED

    def test_evaluation_in_training_mode_is_not_said_to_be_none(self) -> None:
        log = hand_drawn(lambda log: log.forward(5, 8).backward(8).optimizer(2))
        log.forward(40, 100).forward(5, 8).backward(8).optimizer(2)
        assert point("inference mode", threaded(log, Inspection())).status is Status.UNKNOWN

    def test_evaluation_with_gradients_fails_even_where_it_costs_little(self) -> None:
        made = look_at(tuned(), evaluations_with_gradients=[Pass([users(30)], 0, 0.1)])
        found = point("inference mode", made)
        assert found.status is Status.FAILED and found.evidence.endswith("train.py:30")


@pytest.mark.parametrize(
    ("precision", "status"),
    [
        (Precision(autocast="bfloat16"), Status.PASSED),
        (Precision(tf32_matmul=True), Status.PASSED),
        (Precision(), Status.PASSED),  # as no finding says that it matters
    ],
)
def test_precision(precision: Precision, status: Status) -> None:
    assert point("precision", script(tuned(), precision=precision)).status is status


def test_of_products_that_were_not_counted_nobody_knows_what_they_take() -> None:
    counted = operators(flops={"float32": 1e6}, without_formula={"linalg_inv": 3})
    made = point("precision", script(look_at(tuned(), operators=counted), precision=Precision()))
    assert made.status is Status.UNKNOWN and "linalg_inv" in made.evidence


def test_a_wait_whose_price_is_not_known_fails_nothing() -> None:
    asked = found("synchronisation", is_limit=False)
    assert point("synchronisation", blind(tuned()), asked).status is Status.UNKNOWN
