from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.levers.base import Receipt
from hotloop.plan import Plan
from hotloop.report.search_figures import search_figures
from hotloop.search.proof import Proof
from hotloop.study import Found, Options
from hotloop.trial.trial import State
from tests.builders import measurement, training
from tests.report.studies import BF16, BOTH, COMPILE, lost, ratio, searched, timed, won


def unproven() -> Found:
    """Its figures are those of its trials."""
    found = won().found
    assert found is not None
    return replace(found, proof=None)


def test_before_and_after_stand_in_the_ratio_that_is_claimed() -> None:
    """Whatever other processes of the proof took: of a longer plan, or in pairs of its parts."""
    record = searched(won().found, timed("proof", BOTH, 11), timed("proof", Plan(), 23))
    found = search_figures(record)
    assert found.before is not None and found.after is not None
    assert found.before.step_seconds == pytest.approx(0.020, rel=1e-4)
    assert found.after.step_seconds == pytest.approx(0.010, rel=1e-4)


def test_without_pairs_they_are_geometric_means_over_the_proof() -> None:
    proofs = [timed("proof", BOTH, ms) for ms in (5, 10, 20)]
    record = searched(unproven(), timed("screen", BOTH, 50), *proofs, timed("proof", Plan(), 20))
    found = search_figures(record)
    assert found.before is not None and found.after is not None
    assert found.before.step_seconds == pytest.approx(0.020)
    assert found.after.step_seconds == pytest.approx(0.010)
    assert found.after.epoch_seconds == pytest.approx(1.0)
    assert found.after.memory == 2**30
    assert not found.after.screened


def test_a_process_that_was_disturbed_does_not_stand_for_the_job() -> None:
    """As long as a proof has few of them, it may be every other one."""
    proofs = [timed("proof", Plan(), ms) for ms in (20, 900)]
    found = search_figures(searched(unproven(), *proofs))
    assert found.before is not None
    assert found.before.step_seconds == pytest.approx(0.020)
    assert sum(one.seconds for one in found.before.phases) == pytest.approx(0.020)


def test_a_rung_is_the_plan_up_to_there() -> None:
    first, second = search_figures(won()).ladder
    assert (first.lever, second.lever) == ("bf16", "compile")
    assert first.pace is not None and second.pace is not None
    assert first.pace.step_seconds == pytest.approx(0.016)
    assert first.pace.screened and not second.pace.screened
    assert first.gain is not None and first.gain.ratio == pytest.approx(1.2, rel=0.01)


def test_a_rung_that_was_never_measured_has_no_pace() -> None:
    record = replace(won(), trials=tuple(t for t in won().trials if t.plan != Plan((BF16,))))
    assert [rung.pace is None for rung in search_figures(record).ladder] == [True, False]


def test_a_plan_of_one_is_what_the_whole_proof_is_about() -> None:
    alone = Plan((COMPILE,))
    proof = Proof(alone, ratio(20, 10), (), (), 0.0)
    (rung,) = search_figures(won(plan=alone, proof=proof)).ladder
    assert rung.gain == proof.comparison


def test_what_did_not_complete_and_what_was_not_timed_is_no_pace() -> None:
    broken = timed("proof", BOTH, 1, state=State.CRASHED)
    examined = timed("reference", BOTH, 1)
    found = search_figures(searched(won().found, timed("proof", BOTH, 10), broken, examined))
    assert found.after is not None
    assert found.after.step_seconds == pytest.approx(0.010)
    assert found.before is None
    assert found.payback is None


def test_the_search_is_paid_back_by_what_each_step_wins() -> None:
    found = search_figures(won())
    assert (found.runs, found.seconds) == (7, 400.0)
    assert found.payback is not None
    assert found.payback.steps == pytest.approx(40_000, rel=0.001)
    assert found.payback.seconds == pytest.approx(400, rel=0.001)


def test_what_the_plan_costs_once_is_paid_back_too() -> None:
    cold = measurement(training(first=5000).events)  # steps of 20 ms, the first 5 s longer
    proofs = [timed("proof", Plan(), 40), timed("proof", BOTH, 20)]
    first = timed("screen", BOTH, 20, measurement=cold, seconds=2.0)
    found = search_figures(searched(unproven(), first, *proofs))
    assert found.after is not None and found.payback is not None
    assert found.after.one_off_seconds == pytest.approx(5.0, rel=0.05)
    spent = found.seconds + found.after.one_off_seconds
    assert found.payback.steps == pytest.approx(spent / 0.020, rel=0.01)


def test_so_is_what_came_before_the_first_step() -> None:
    """Filling a cache, say: no step shows it, its receipt does."""
    receipt = Receipt("cache_dataset", True, once_seconds=7.0)
    proofs = [timed("proof", Plan(), 40), timed("proof", BOTH, 20, receipts=(receipt,))]
    found = search_figures(searched(unproven(), *proofs))
    assert found.after is not None and found.payback is not None
    assert found.after.one_off_seconds == pytest.approx(7.0)
    assert found.payback.steps == pytest.approx((found.seconds + 7.0) / 0.020, rel=0.01)


def test_less_memory_pays_no_time_back() -> None:
    """That its steps may also be quicker is not what was searched for, nor proven."""
    assert search_figures(won(options=Options(objective="memory"))).payback is None


def test_a_plan_that_wins_no_time_is_never_paid_back() -> None:
    record = searched(unproven(), timed("proof", Plan(), 10), timed("proof", BOTH, 10))
    assert search_figures(record).payback is None


def test_without_a_plan_there_is_no_ladder() -> None:
    found = search_figures(lost())
    assert (found.after, found.ladder, found.payback) == (None, (), None)
    assert found.before is not None and found.before.screened
