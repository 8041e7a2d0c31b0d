from __future__ import annotations

import pytest

from hotloop.diagnose.rules.unused_gradients import unused_gradients
from hotloop.inspection import Call, Inspection
from hotloop.unused import UnusedGradients
from tests.builders import training
from tests.diagnose.making import case, library, users

BUILT = users(7, source="optimizer = Adam(model.head.parameters())")
CALLS = [Call("an optimizer", [BUILT, library("torch/optim/adam.py", "__init__")], 0, 0.0)]


def seen(of_backward: float) -> Inspection:
    return Inspection(unused_gradients=UnusedGradients(12, 10**6, of_backward), calls=CALLS)


def test_what_comes_after_the_last_gradient_that_is_used() -> None:
    made = case(training(), seen(0.9))
    finding = unused_gradients(made)
    assert finding is not None and finding.is_limit and finding.places == (BUILT,)
    assert finding.share == pytest.approx(0.9 * made.share("backward"))
    assert finding.title.startswith("Gradients of 12 tensors are computed and never used, for")


def test_in_the_midst_of_a_pass_they_win_little() -> None:
    finding = unused_gradients(case(training(), seen(0.01)))
    assert finding is not None and not finding.is_limit


def test_there_are_none() -> None:
    assert unused_gradients(case(training(), Inspection(calls=CALLS))) is None
