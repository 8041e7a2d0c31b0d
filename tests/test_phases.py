from __future__ import annotations

import pytest

from hotloop.measurement import Kind
from hotloop.phases import PHASE_OF, Phase, following, phase_of_gaps
from tests.builders import Log

GAP = Kind.BACKWARD_END, Kind.OPTIMIZER_BEGIN


def test_every_call_has_a_phase() -> None:
    assert {kind // 2 for kind in Kind} == set(PHASE_OF)


def test_what_is_done_with_gradients_counts_as_the_optimizer_or_not() -> None:
    gaps = phase_of_gaps([], Kind.OPTIMIZER_END, clipping=True)
    others = phase_of_gaps([], Kind.OPTIMIZER_END, clipping=False)
    assert gaps == others | {GAP: Phase.OPTIMIZER}


def test_a_batch_is_made_by_hand_only_without_a_loader() -> None:
    drawing = Kind.OPTIMIZER_END, Kind.FORWARD_BEGIN
    assert phase_of_gaps([], Kind.OPTIMIZER_END, True)[drawing] is Phase.DATA
    assert drawing not in phase_of_gaps([Kind.DATA_END], Kind.OPTIMIZER_END, True)


def test_a_second_pass_is_made_ready_only_inside_a_step() -> None:
    ready = Kind.BACKWARD_END, Kind.FORWARD_BEGIN
    assert phase_of_gaps([], Kind.OPTIMIZER_END, True)[ready] is Phase.FORWARD
    assert ready not in phase_of_gaps([], Kind.BACKWARD_END, True)


@pytest.mark.parametrize("times", [0, 1, 2])
def test_clearing_gradients_tells_nothing_of_what_was_before(times: int) -> None:
    log = Log().optimizer(1)
    for _ in range(times):
        log.zero_grad(1)
    kinds = log.forward(1).events.kind
    found = dict(zip(kinds, following(kinds), strict=True))
    assert found[Kind.OPTIMIZER_END] == Kind.FORWARD_BEGIN
    assert found.get(Kind.ZERO_GRAD_END, Kind.FORWARD_BEGIN) == Kind.FORWARD_BEGIN
    assert found[Kind.FORWARD_END] is None


def test_between_passes_of_a_closure_it_does() -> None:
    kinds = Log().backward(1).zero_grad(1).forward(1).events.kind
    assert following(kinds)[1] == Kind.ZERO_GRAD_BEGIN
