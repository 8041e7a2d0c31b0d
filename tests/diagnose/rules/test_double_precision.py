from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.checklist import Status, checklist
from hotloop.diagnose.rules.double_precision import HALF, double_precision
from hotloop.inspection import Call, Inspection
from hotloop.measurement import Precision
from tests.builders import training
from tests.diagnose.making import ROOF, case, operator_line, operators, users

PASS = users(20, source="loss = criterion(model(x), y)")
TOLD = users(5, source="model = Net().double()")


def counted(double: float, single: float, elements: int = 10**6) -> Inspection:
    line = operator_line(PASS, 10, elements, flops=double + single)
    flops = {"float64": double, "float32": single}
    return Inspection(
        operators=operators(line, flops=flops), calls=[Call("Module.double", [TOLD], 0, 0.0)]
    )


def test_a_model_that_was_made_to_fit_numpys_numbers() -> None:
    made = case(training(), counted(1e9, 0.0))
    finding = double_precision(made)
    assert finding is not None and finding.is_limit
    assert finding.share == pytest.approx(HALF * made.share("forward", "backward", "optimizer"))
    assert finding.places == (TOLD, PASS)
    precision = next(one for one in checklist(made, [finding]) if one.name == "precision")
    assert precision.status is Status.FAILED


def test_what_the_machine_does_is_believed() -> None:
    roof = replace(ROOF, cpu_matrix_flops={"float32": 100e9, "float64": 25e9})
    finding = double_precision(case(training(), counted(1e9, 0.0), roof=roof))
    assert finding is not None and "4 times as fast" in finding.evidence[1]


def test_small_operators_win_nothing() -> None:
    finding = double_precision(case(training(), counted(1e3, 0.0, elements=64)))
    assert finding is not None and not finding.is_limit


def test_a_loss_in_double_precision_is_meant() -> None:
    assert double_precision(case(training(), counted(1e6, 1e9))) is None


def test_so_is_a_default() -> None:
    meant = Precision(default_dtype="float64")
    assert double_precision(case(training(), counted(1e9, 0.0), precision=meant)) is None


def test_nothing_was_counted() -> None:
    assert double_precision(case(training())) is None
