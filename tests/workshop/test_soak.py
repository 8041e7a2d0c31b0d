from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hotloop.evidence import Delivered, SoakSeen
from hotloop.levers.base import Receipt
from hotloop.measurement import Losses
from hotloop.plan import LeverSetting, Plan
from hotloop.study import Soaked
from hotloop.trial.spec import Soak
from hotloop.trial.trial import State, Trial
from hotloop.workshop import soak
from tests import builders

PLAN = Plan((LeverSetting("fused_optimizer", {}),))
BATCHES = [Delivered(0, number, batch) for number in (1, 2) for batch in "abc"]
STALE = [*BATCHES[:-1], Delivered(0, 2, "another")]
PLAIN = SoakSeen(passes=2, short_batch=True, evaluation=True, saved=True, delivered=BATCHES)
PLANNED = replace(PLAIN, loaded=True)
BACK = replace(PLANNED, saved=False)
ALL = (soak.SHORT, soak.SECOND, soak.SAME, soak.EVALUATION, soak.THERE, soak.BACK)
NO_LOADER = tuple(what for what in ALL if what != soak.SAME)


def trial(seen: SoakSeen, **changes: Any) -> Trial:
    return builders.trial(**{"soak": seen, **changes})


def crashed(reason: str) -> Trial:
    return trial(SoakSeen(), state=State.CRASHED, reason=reason)


def nan() -> Any:
    return builders.measurement(losses=Losses([1, 5], [0.5, None], not_finite=1))


class Runs:
    """Hands out trials in order, and leaves the states that real ones would."""

    def __init__(self, *trials: Trial) -> None:
        self._trials: Iterator[Trial] = iter(trials)
        self.orders: list[tuple[Plan, Soak]] = []

    def __call__(self, plan: Plan, order: Soak, purpose: str) -> Trial:
        assert purpose == "soak"
        self.orders.append((plan, order))
        if order.save:
            Path(order.save).touch()
        return next(self._trials)


def soaked(folder: Path, *trials: Trial) -> Soaked:
    runs = Runs(*trials)
    found = soak.soak(PLAN, runs, folder)
    assert len(runs.orders) == len(trials)
    return found


def test_a_plan_that_comes_through_everything_passes(tmp_path: Path) -> None:
    found = soaked(tmp_path, trial(PLAIN), trial(PLANNED), trial(BACK))
    assert found == Soaked(True, "", met=ALL)


def test_the_state_goes_from_the_plain_job_to_the_plan_and_back(tmp_path: Path) -> None:
    runs = Runs(trial(PLAIN), trial(PLANNED), trial(BACK))
    soak.soak(PLAN, runs, tmp_path)
    (first, plain), (second, planned), (third, back) = runs.orders
    assert [first, second, third] == [Plan(), PLAN, Plan()]
    assert (plain.load, planned.load, back.load) == ("", plain.save, planned.save)
    assert back.save == "" and plain.save != planned.save
    assert Path(plain.save).parent == tmp_path


def test_no_state_is_left_behind(tmp_path: Path) -> None:
    soaked(tmp_path, trial(PLAIN), crashed("The script failed after 8 steps: ValueError."))
    assert list(tmp_path.iterdir()) == []


def test_a_crash_under_the_plan_is_the_reason(tmp_path: Path) -> None:
    found = soaked(tmp_path, trial(PLAIN), crashed("The script failed after 8 steps: ValueError."))
    assert not found.passed
    assert found.reason == "under the plan: the script failed after 8 steps: ValueError"


@pytest.mark.parametrize(
    "state", [state for state in State if state is not State.COMPLETE], ids=str
)
def test_whatever_is_not_complete_under_the_plan_fails(state: State, tmp_path: Path) -> None:
    planned = trial(PLANNED, state=state, reason="Something happened.")
    assert not soaked(tmp_path, trial(PLAIN), planned).passed


def test_a_loss_that_is_not_finite_any_more_fails(tmp_path: Path) -> None:
    found = soaked(tmp_path, trial(PLAIN), trial(PLANNED, measurement=nan()))
    assert (found.passed, found.reason) == (False, "under the plan a loss is no longer finite")


def test_one_that_never_was_finite_is_the_jobs_own(tmp_path: Path) -> None:
    plain, planned = trial(PLAIN, measurement=nan()), trial(PLANNED, measurement=nan())
    assert soaked(tmp_path, plain, planned, trial(BACK)).passed


def test_a_state_that_the_plan_cannot_load_fails(tmp_path: Path) -> None:
    planned = trial(replace(PLANNED, loaded=False, problem="the state has 1 models, the job 2"))
    found = soaked(tmp_path, trial(PLAIN), planned)
    assert (found.passed, found.reason) == (
        False,
        "under the plan: the state has 1 models, the job 2",
    )
    assert soak.THERE in found.not_met


def test_a_state_that_the_plain_job_cannot_load_fails(tmp_path: Path) -> None:
    back = trial(replace(BACK, loaded=False, problem="a.weight is not there"))
    found = soaked(tmp_path, trial(PLAIN), trial(PLANNED), back)
    assert not found.passed
    assert "does not take the plan's state: a.weight is not there" in found.reason
    assert found.not_met == (soak.BACK,)


def test_a_plain_job_that_crashes_on_the_plans_state_fails(tmp_path: Path) -> None:
    found = soaked(tmp_path, trial(PLAIN), trial(PLANNED), crashed("It failed."))
    assert not found.passed
    assert "does not go on from the plan's state: it failed" in found.reason


def test_a_plain_job_that_never_loads_the_plans_state_fails(tmp_path: Path) -> None:
    back = trial(replace(BACK, loaded=False))
    assert not soaked(tmp_path, trial(PLAIN), trial(PLANNED), back).passed


def test_a_plan_that_has_nothing_to_save_where_the_plain_job_has_fails(tmp_path: Path) -> None:
    found = soaked(tmp_path, trial(PLAIN), trial(replace(PLANNED, saved=False)))
    assert (found.passed, found.reason) == (False, "under the plan there is no state to save")


def test_a_plan_that_loses_the_short_batch_fails(tmp_path: Path) -> None:
    found = soaked(tmp_path, trial(PLAIN), trial(replace(PLANNED, short_batch=False)))
    assert not found.passed
    assert "short batch is not trained on" in found.reason


def test_a_plan_that_ends_before_it_has_loaded_anything_fails(tmp_path: Path) -> None:
    short = builders.measurement(builders.training(3).events)
    planned = trial(replace(PLANNED, loaded=False), measurement=short)
    found = soaked(tmp_path, trial(PLAIN), planned)
    assert not found.passed
    assert "20 steps" in found.reason


def test_what_the_script_does_not_have_is_said_and_does_not_count_against_it(
    tmp_path: Path,
) -> None:
    """A script of a few steps: no loader, no evaluation, over before anything could be loaded."""
    few = SoakSeen(saved=True)
    found = soaked(tmp_path, trial(few), trial(few), trial(SoakSeen()))
    assert found == Soaked(True, "", met=(), not_met=NO_LOADER)


def test_without_models_there_is_nothing_to_load(tmp_path: Path) -> None:
    runs = Runs(trial(replace(PLAIN, saved=False)), trial(replace(PLAIN, saved=False)))
    found = soak.soak(PLAN, runs, tmp_path)
    assert found.passed
    assert found.not_met == (soak.THERE, soak.BACK)
    assert runs.orders[1][1].load == ""


def test_why_the_plain_jobs_state_cannot_be_saved_is_said(tmp_path: Path) -> None:
    plain = trial(replace(PLAIN, saved=False, problem="the state could not be saved: no space"))
    found = soaked(tmp_path, plain, trial(replace(PLAIN, saved=False)))
    assert "a checkpoint at all (the state could not be saved: no space)" in found.not_met


def test_a_job_that_does_not_bear_short_epochs_is_soaked_in_whole_ones(tmp_path: Path) -> None:
    runs = Runs(crashed("It failed."), trial(PLAIN), trial(PLANNED), trial(BACK))
    found = soak.soak(PLAN, runs, tmp_path)
    assert [order.batches for _, order in runs.orders] == [soak.BATCHES, 0, 0, 0]
    assert found == Soaked(True, "", met=ALL, not_met=(soak.CUT,))


def test_a_job_that_fails_by_itself_cannot_show_anything(tmp_path: Path) -> None:
    found = soaked(tmp_path, crashed("It failed."), crashed("It failed again."))
    assert found == Soaked(False, "the plain job does not bear a soak: it failed again")


def test_an_interrupted_run_is_not_repeated(tmp_path: Path) -> None:
    stopped = trial(SoakSeen(), state=State.INTERRUPTED, reason="The run was interrupted.")
    assert not soaked(tmp_path, stopped).passed


@pytest.mark.parametrize(("samples", "passes"), [(64, True), (16, False)])
def test_a_larger_batch_comes_as_far_in_fewer_steps(
    samples: int, passes: bool, tmp_path: Path
) -> None:
    """A job of 20 steps, over before its state could be loaded; its own batches are of 16."""
    receipt = Receipt("batch_size", True, "", {"samples_before": 16, "samples": samples})
    short = builders.measurement(builders.training(6).events)
    ended = replace(PLAIN, short_batch=samples == 16)
    planned = trial(ended, measurement=short, receipts=(receipt,))
    runs = Runs(trial(PLAIN), planned, trial(SoakSeen()))
    assert soak.soak(PLAN, runs, tmp_path).passed is passes


def test_other_data_in_a_second_pass_fails_where_two_plain_runs_have_the_same(
    tmp_path: Path,
) -> None:
    planned = trial(replace(PLANNED, delivered=STALE))
    runs = Runs(trial(PLAIN), planned, trial(BACK))
    found = soak.soak(PLAN, runs, tmp_path)
    assert not found.passed
    assert found.reason == "under the plan batch 3 of loader 0 in a second epoch holds other data"
    assert soak.SAME in found.not_met
    plan, again = runs.orders[2]  # which begins from other weights, and leaves nothing
    assert (plan, again.load, again.save) == (Plan(), runs.orders[0][1].save, "")


@pytest.mark.parametrize("other", [STALE, [], None])
def test_where_two_plain_runs_differ_nothing_is_claimed(
    other: list[Delivered] | None, tmp_path: Path
) -> None:
    planned, again = (trial(replace(PLANNED, delivered=one)) for one in (STALE, other))
    found = soaked(tmp_path, trial(PLAIN), planned, again, trial(BACK))
    assert found.passed
    assert soak.DIFFERS in found.not_met and soak.SAME not in (*found.met, *found.not_met)


def test_without_a_state_the_weights_may_have_changed_the_data(tmp_path: Path) -> None:
    plain = replace(PLAIN, saved=False)
    found = soaked(tmp_path, trial(plain), trial(replace(plain, delivered=STALE)))
    assert found.passed
    assert soak.DIFFERS in found.not_met


def test_a_plan_with_batches_of_its_own_is_not_compared(tmp_path: Path) -> None:
    other = [replace(one, checksum=one.checksum.upper()) for one in BATCHES]
    found = soaked(tmp_path, trial(PLAIN), trial(replace(PLANNED, delivered=other)), trial(BACK))
    assert found.passed
    assert soak.SAME in found.not_met


def test_runs_of_an_earlier_hotloop_are_still_read(tmp_path: Path) -> None:
    """They noted no batches."""
    then = [trial(replace(one, delivered=None)) for one in (PLAIN, PLANNED, BACK)]
    assert soaked(tmp_path, *then) == Soaked(True, "", met=NO_LOADER)
