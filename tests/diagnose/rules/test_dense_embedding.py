from __future__ import annotations

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.rules.dense_embedding import dense_embedding
from hotloop.inspection import Inspection
from hotloop.measurement import OptimizerSeen
from tests.builders import training
from tests.diagnose.making import case, operator_line, operators, users

LOOKUP, REST = users(8, "Rec.forward", "self.items(rows)"), users(9, "Rec.forward", "self.top(x)")


def job(touched: int, name: str = "SGD", seconds: float = 0.03) -> Case:
    table = operator_line(
        LOOKUP, 2, backward_seconds=0.03, tables=(1_000_000, touched, seconds), backward_operators=2
    )
    rest = operator_line(REST, 10, backward_seconds=0.01)
    counted = Inspection(operators=operators(table, rest))
    optimizer = OptimizerSeen(name, 1_250_000, 1, False, None, 20)
    return case(training(), counted, optimizers=[optimizer])


def test_few_rows_of_a_large_table() -> None:
    made = job(10_000)
    finding = dense_embedding(made)
    assert finding is not None and finding.is_limit and finding.places == (LOOKUP,)
    takes = 0.75 * made.share("backward") + 0.8 * made.share("optimizer")
    assert finding.share == pytest.approx(takes * 0.99)
    assert "which the optimizer takes" in finding.remedy
    assert finding.evidence[0].startswith("1,000,000 numbers of gradients a step, of which 10,000")


def test_adam_would_be_another_training() -> None:
    finding = dense_embedding(job(10_000, "Adam"))
    assert finding is not None and "another training" in finding.remedy


def test_a_table_that_is_looked_up_as_a_whole() -> None:
    assert dense_embedding(job(600_000)) is None


def test_nothing_is_looked_up() -> None:
    assert dense_embedding(case(training(), Inspection(operators=operators()))) is None
