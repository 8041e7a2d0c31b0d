from __future__ import annotations

import pytest

from hotloop.diagnose.rules.evaluation_with_gradients import SAVED, evaluation_with_gradients
from hotloop.diagnose.steady import step_ends
from hotloop.inspection import Inspection, Pass
from tests.builders import Log
from tests.diagnose.making import case, library, users

CALL = users(30, "validate", "outputs = model(x)")
SEEN = Inspection(
    evaluations_with_gradients=[Pass([CALL, library("torch/nn/modules/module.py", "f")], 0, 0.02)]
)


def validated(passes: int, ms: float = 20.0) -> Log:
    """Every fifth step is followed by so many passes that nothing differentiates."""
    log = Log()
    for number in range(40):
        log.forward(8, 8).backward(8).optimizer(4)
        if number % 5 == 4:
            for _ in range(passes):
                log.forward(ms)
    return log.forward(8, 8).backward(8).optimizer(4)


def test_passes_that_only_some_steps_have() -> None:
    finding = evaluation_with_gradients(case(validated(4), SEEN, loaders=[]))
    assert finding is not None and finding.is_limit and finding.places == (CALL,)
    # 80 ms of validation for every five steps of 20 ms.
    assert finding.share == pytest.approx(SAVED * 80 / 180, rel=0.05)
    assert any("estimate" in line for line in finding.evidence)


def test_a_short_one_is_worth_a_remark() -> None:
    finding = evaluation_with_gradients(case(validated(1, ms=2), SEEN, loaders=[]))
    assert finding is not None and not finding.is_limit


def test_a_model_that_is_called_twice_a_step_is_no_evaluation() -> None:
    log = Log()
    for _ in range(30):
        log.forward(4, 8).forward(4, 8).backward(8).optimizer(4)
    assert evaluation_with_gradients(case(log, SEEN, loaders=[])) is None


def in_training_mode(log: Log, every: int, ms: float) -> Inspection:
    """Passes that nothing differentiates, in every so many-th step."""

    ends = step_ends(log.events)
    stack = [CALL, library("torch/nn/modules/module.py", "f")]
    return Inspection(
        evaluations_with_gradients=[
            Pass(stack, end + 1, ms / 1e3, training=True) for end in ends[::every]
        ]
    )


def test_a_script_that_forgets_eval_as_well() -> None:
    log = validated(4)
    seen = in_training_mode(log, 5, 80)
    finding = evaluation_with_gradients(case(log, seen, looked=log, loaders=[]))
    assert finding is not None and finding.is_limit and finding.places == (CALL,)
    assert finding.share == pytest.approx(SAVED * 80 / 180, rel=0.05)
    assert finding.title.startswith("What nothing differentiates")
    assert "in training mode" in finding.evidence[0]


def test_no_more_than_those_passes_took_can_be_won() -> None:
    """In every fifth step a generator learns, too; one small picture is looked at beside it."""
    log = validated(4)
    finding = evaluation_with_gradients(
        case(log, in_training_mode(log, 5, 2), looked=log, loaders=[])
    )
    assert finding is not None and not finding.is_limit
    assert finding.share < SAVED * 3 * 2 / 180


def test_what_a_gan_draws_for_its_critic_is_training() -> None:
    log = validated(4)
    seen = in_training_mode(log, 1, 20)
    assert evaluation_with_gradients(case(log, seen, looked=log, loaders=[])) is None


def test_evaluation_mode_was_not_seen() -> None:
    assert evaluation_with_gradients(case(validated(4), Inspection(), loaders=[])) is None
    assert evaluation_with_gradients(case(validated(4), loaders=[])) is None
