from __future__ import annotations

import math
from dataclasses import replace

import pytest

from hotloop.evidence import Evidence, Structure
from hotloop.measurement import Spans
from hotloop.plan import Plan
from hotloop.search.candidate import Candidate
from hotloop.trial.trial import Trial
from hotloop.workshop.lengths import least_seconds
from hotloop.workshop.outlook import (
    TO_SOAK,
    Later,
    after_the_proof,
    is_short,
    kept_back,
    once_more,
    outlook,
    without_passengers,
)
from tests import builders
from tests.simulated import plan_of


def test_without_candidates_the_one_run_was_all() -> None:
    found = outlook((), 30.0)
    assert (found.runs, found.seconds) == ((1, 1), (30.0, 30.0))


def test_every_setting_is_run_at_the_least() -> None:
    candidates = (Candidate("compile", ({"mode": "default"}, {"mode": "reduce-overhead"}), 0.3),)
    found = outlook((*candidates, Candidate("bf16", ({},), 0.2)), 30.0)
    assert found.runs[0] == 4
    later = Candidate("fused_optimizer", ({},), 0.01, worth_from=5.0)
    assert outlook((*candidates, later), 30.0).runs[0] == 3
    assert found.runs[1] > 2 * found.runs[0]
    assert found.seconds == (found.runs[0] * 30.0, found.runs[1] * 30.0)
    assert found.seconds[0] < found.to_prove < found.seconds[1]


def took(seconds: float, once: float = 0.0) -> Trial:
    """A trial whose steps are steady but for the first."""
    log = builders.training(first=1000 * once)
    return builders.trial(seconds=seconds, measurement=builders.measurement(log.events))


def test_what_comes_after_the_climb_is_kept_back_but_never_all() -> None:
    assert kept_back(3600.0, 20, [took(10.0)]) == 200.0
    assert kept_back(60.0, 20, [took(10.0)]) < 60.0
    assert kept_back(3600.0, 0, [took(10.0)]) == kept_back(3600.0, 20, []) == 0.0


def test_runs_that_take_longer_are_reckoned_with() -> None:
    assert kept_back(3600.0, 20, [took(10.0), took(30.0)]) == 400.0


def test_what_is_compiled_once_is_not_compiled_again() -> None:
    compiling = [took(10.0), took(50.0, once=40.0)]
    assert kept_back(3600.0, 20, compiling) == pytest.approx(200.0)
    # Of a first run nobody knows what would come again.
    assert kept_back(3600.0, 20, [took(50.0, once=40.0)]) == 1000.0


def test_what_is_captured_anew_in_every_process_comes_again() -> None:
    graphs = replace(took(14.0, once=4.0), plan=plan_of("model_graph"))
    code = replace(took(14.0, once=4.0), plan=plan_of("compile"))
    assert kept_back(3600.0, 20, [took(10.0), graphs]) == pytest.approx(240.0)
    assert kept_back(3600.0, 20, [took(10.0), code]) == pytest.approx(200.0)


def test_what_the_job_compiles_itself_lies_in_the_cache_for_the_next_run() -> None:
    compiled = Spans([0], [40 * 10**9])
    log = builders.training(first=40_000.0)
    made = builders.measurement(log.events, script_compiling=compiled)
    first = builders.trial(seconds=50.0, measurement=made)
    assert once_more(first) == pytest.approx(20.0)
    assert once_more(took(50.0, once=40.0)) == 50.0
    assert once_more(builders.trial(seconds=50.0, measurement=None)) == 50.0
    assert kept_back(3600.0, 10, [first]) == pytest.approx(200.0, rel=0.2)
    assert least_seconds([first], Plan(), "proof") == pytest.approx(20.0)


def test_a_trial_without_a_measurement_is_reckoned_with_whole() -> None:
    crashed = builders.trial(seconds=30.0, measurement=None)
    assert kept_back(3600.0, 20, [took(10.0), crashed]) == 400.0


def test_time_is_short_where_compiling_might_take_all_of_it() -> None:
    two = (Candidate("compile", ({},), 0.3), Candidate("fused_optimizer", ({},), 0.1))
    assert is_short(two, left=40.0, seconds=5.0)
    assert not is_short(two, left=90.0, seconds=5.0)
    assert not is_short(two, left=math.inf, seconds=5.0)


def test_what_is_examined_takes_as_long_as_what_was() -> None:
    examined = replace(took(30.0), evidence=Evidence(Structure(), [], []))
    assert kept_back(3600.0, 10, [took(10.0), examined]) == 100.0
    assert kept_back(3600.0, 10, [took(10.0), examined], examined=2) == 160.0
    assert kept_back(3600.0, 10, [took(10.0)], examined=2) == 120.0


def test_what_runs_of_other_plans_took_says_little() -> None:
    slow, quick = (replace(took(50.0), plan=plan_of("compile")), took(10.0))
    assert Later(10).seconds(3600.0, [quick, slow]) == 300.0
    assert Later(10, of=(quick.plan,)).seconds(3600.0, [quick, slow]) == 100.0


def test_what_was_soaked_need_not_be_again() -> None:
    start, one, two = Plan(), plan_of("bf16"), plan_of("bf16", "compile")
    assert after_the_proof(two, start, soaked=two) == Later()
    assert after_the_proof(two, start, soaked=one).runs == TO_SOAK
    assert without_passengers(two, start).runs == TO_SOAK
