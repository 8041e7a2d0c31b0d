from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from hotloop.equivalence.judge import SAME_MATH, Equivalence, Witnesses, judge, together
from hotloop.evidence import Difference, Evidence, Given, SettingSeen, StepSeen, Structure
from hotloop.measurement import Losses
from hotloop.trial.trial import State, Trial
from tests import builders

STEPS, FREE = 20, 12
STEP = StepSeen(optimizer=0, taken=True, moved=True, passes=1, clips=0)
SKIPPED = replace(STEP, taken=False, moved=False)
FALLING = [2.0 - 0.05 * number for number in range(STEPS)]
NOISE = 1e-6


def structure(**changes: Any) -> Structure:
    made = Structure(
        steps=[STEP] * STEPS,
        settings=[SettingSeen(0, 0, 0, "lr", "0.1")],
        given=[Given("loader 0", step, 8, f"batch {step}") for step in range(STEPS)],
    )
    return replace(made, **changes)


def differences(size: float | None) -> list[Difference]:
    return [
        Difference(step, quantity, "w", 1.0, size, 1.0, 1e-7)
        for step in (FREE, FREE + 3)
        for quantity in ("gradient", "update")
    ]


def evidence(size: float | None = 0.0, **changes: Any) -> Evidence:
    made = Evidence(structure(), differences(size), forced=[FREE, FREE + 3], kept=[])
    return replace(made, **changes)


def examined(
    found: Evidence | None, losses: Sequence[float | None] = FALLING, **changes: Any
) -> Trial:
    measured = builders.measurement(losses=Losses(value=list(losses)))
    return builders.trial(**{"measurement": measured, "evidence": found, **changes})


REFERENCE = examined(evidence(differences=[]))
YARDSTICK = examined(evidence(NOISE))
RESEEDED = tuple(
    examined(evidence(differences=[], forced=[]), [loss + apart for loss in FALLING])
    for apart in (-0.1, 0.1)
)
WITNESSES = Witnesses(REFERENCE, YARDSTICK, RESEEDED)


def judged(candidate: Trial, witnesses: Witnesses = WITNESSES) -> Equivalence:
    return judge(candidate, witnesses, SAME_MATH)


def reasons(candidate: Trial, witnesses: Witnesses = WITNESSES) -> tuple[str, ...]:
    found = judged(candidate, witnesses)
    assert found.same == (not found.reasons)
    return found.reasons


def test_other_passes_are_the_same_training_where_they_may_be() -> None:
    by_step = [Given("model 0", step, 8, f"batch {step}") for step in range(STEPS)]
    parts = [Given("model 0", step, 4, f"half {step}") for step in range(STEPS) for _ in "ab"]
    loaded = structure().given

    def trial(size: float | None, **changes: Any) -> Trial:
        made = structure(**{"given": [*loaded, *by_step], "by_step": by_step, **changes})
        return examined(evidence(size, structure=made))

    witnesses = Witnesses(trial(None), trial(NOISE), RESEEDED)
    two = [replace(STEP, passes=2)] * STEPS
    halves = [loss for loss in FALLING for _ in "ab"]
    split = trial(NOISE, steps=two, given=[*loaded, *parts])
    split = replace(split, measurement=examined(None, halves).measurement)
    found = judge(split, witnesses, SAME_MATH, regroups=True)
    assert found.same and "backward passes" not in found.compared[0]
    assert not judge(split, witnesses, SAME_MATH).same
    other = [replace(one, checksum="other") for one in by_step]
    lost = judge(trial(NOISE, steps=two, by_step=other), witnesses, SAME_MATH, regroups=True)
    assert lost.reasons == ("batch 1 of model 0 holds other data",)


def test_a_step_of_two_optimizers_is_one_step() -> None:
    both = [replace(STEP, optimizer=number % 2) for number in range(2 * STEPS)]
    rounds = structure(steps=both)
    first, noisy = (
        replace(evidence(size, structure=rounds), forced=[8, 9, 12, 13]) for size in (None, NOISE)
    )
    found = judge(examined(noisy), Witnesses(examined(first), examined(noisy), RESEEDED), SAME_MATH)
    assert (found.steps, found.forced) == (STEPS, 2)
    assert found.compared[0].startswith(f"{STEPS} steps: ")
    assert " in 2 steps " in found.compared[-2]


def test_the_same_training_is_the_same() -> None:
    found = judged(examined(evidence(2 * NOISE)))
    assert found.same
    assert (found.steps, found.forced) == (STEPS, 2)
    assert found.closeness == pytest.approx(2 / SAME_MATH)
    assert found.compared == (
        "20 steps: their number, their backward passes, and every setting of every parameter group",
        "20 batches by checksum (loader 0)",
        "gradients and updates of 1 tensor in 2 steps that began from the same weights, "
        "against noise of one rounding",
        "the loss of a free run against 2 other seeds",
    )
    (not_compared,) = found.not_compared
    assert "dropout was off" in not_compared


@pytest.mark.parametrize("whose", ["the job as it is", "the yardstick", "it"])
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"state": State.CRASHED, "reason": "The script failed."}, "The script failed."),
        ({"state": State.NOT_APPLIED, "reason": "No effect."}, "No effect."),
        ({"evidence": None}, "no evidence"),
    ],
)
def test_a_trial_that_was_not_examined_proves_nothing(
    whose: str, changes: dict[str, Any], why: str
) -> None:
    trials = {"the job as it is": REFERENCE, "the yardstick": YARDSTICK, "it": examined(evidence())}
    trials[whose] = replace(trials[whose], **changes)
    witnesses = Witnesses(trials["the job as it is"], trials["the yardstick"], RESEEDED)
    found = judged(trials["it"], witnesses)
    assert (found.same, found.steps, found.closeness) == (False, 0, None)
    assert found.reasons[0].startswith(f"{whose} could not be examined: {why}")
    # Of the job itself: it ran before, and it is the examination that it does not survive.
    is_blamed = "When it was only timed it did not" not in found.reasons[0]
    assert is_blamed == (whose == "it" or changes.get("state") is not State.CRASHED)


@pytest.mark.parametrize(("then", "now"), [([], FALLING), (FALLING, []), ([], [])])
def test_without_losses_there_is_nothing_to_compare(
    then: Sequence[float], now: Sequence[float]
) -> None:
    witnesses = replace(WITNESSES, reference=examined(evidence(differences=[]), then))
    said = reasons(examined(evidence(), now), witnesses)
    assert said == ("no loss was seen, so there is nothing to compare",)


def test_a_trial_without_a_measurement_has_no_losses() -> None:
    candidate = replace(examined(evidence()), measurement=None)
    assert reasons(candidate) == ("no loss was seen, so there is nothing to compare",)


def test_a_loss_that_is_not_a_number_is_named() -> None:
    broken: list[float | None] = [*FALLING]
    broken[14] = broken[15] = None
    candidate = examined(evidence(), broken)
    assert reasons(candidate) == ("the loss of backward pass 15 is not a number",)
    own = replace(WITNESSES, reference=examined(evidence(differences=[]), broken))
    assert reasons(candidate, own) == ()  # the job's own


def test_a_free_run_that_learns_worse_than_other_seeds_is_named() -> None:
    (said,) = reasons(examined(evidence(), [loss + 0.5 for loss in FALLING]))
    assert said == "left alone its loss is 2.075, where other seeds lie around 1.575"


def test_a_free_run_within_the_spread_of_seeds_or_below_passes() -> None:
    for apart in (0.1, -0.5):
        assert reasons(examined(evidence(), [loss + apart for loss in FALLING])) == ()


def test_losses_after_a_forced_step_are_not_its_own() -> None:
    late = [*FALLING[:FREE], *(loss + 9 for loss in FALLING[FREE:])]
    assert reasons(examined(evidence(), late)) == ()


def test_without_other_seeds_the_losses_own_noise_is_the_spread() -> None:
    alone = replace(WITNESSES, reseeded=())
    assert reasons(examined(evidence()), alone) == ()
    (said,) = reasons(examined(evidence(), [loss + 0.5 for loss in FALLING]), alone)
    assert said.startswith("left alone its loss is 2.075")
    assert not any("seeds" in line for line in judged(examined(evidence()), alone).compared)


def held_back(steps: int) -> Trial:
    """A scaler skips its first steps; from there on it learns as the reference does."""
    structured = structure(steps=[*[SKIPPED] * steps, *[STEP] * (STEPS - steps)])
    losses = [*[FALLING[0]] * steps, *FALLING[: STEPS - steps]]
    return examined(evidence(structure=structured), losses)


def test_a_scaler_that_skips_its_first_steps_learns_later_not_worse() -> None:
    found = judged(held_back(5))
    assert found.same, found.reasons
    assert "5 steps that the gradient scaler skipped" in found.not_compared


def test_a_scaler_that_skips_most_steps_is_named() -> None:
    assert reasons(held_back(7)) == ("its gradient scaler skipped 7 of the first 12 steps",)


def test_no_step_is_nothing_to_compare() -> None:
    nothing = evidence(structure=Structure(), differences=[], forced=[])
    witnesses = Witnesses(examined(nothing), examined(nothing))
    assert reasons(examined(nothing), witnesses) == (
        "no step was seen, so there is nothing to compare",
        "the arithmetic of no step could be compared",
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"steps": [STEP] * 19}, "it made 19 steps in the time of 20: steps are missing"),
        ({"steps": [replace(STEP, clips=1)] * STEPS}, "step 1: gradients were clipped 1 times"),
        ({"settings": [SettingSeen(0, 0, 0, "lr", "0.09")]}, "step 1: lr is 0.09 instead of 0.1"),
        ({"given": structure().given[::-1]}, "batch 1 of loader 0 comes in another order"),
    ],
)
def test_another_structure_is_named(changes: dict[str, Any], said: str) -> None:
    candidate = examined(evidence(structure=structure(**changes)))
    assert any(reason.startswith(said) for reason in reasons(candidate))


def test_a_loader_that_drops_its_last_batch_is_named() -> None:
    candidate = examined(evidence())
    assert candidate.measurement is not None
    inventory = replace(candidate.measurement.inventory, loaders=[builders.loader(drop_last=True)])
    measured = replace(candidate.measurement, inventory=inventory)
    (said,) = reasons(replace(candidate, measurement=measured))
    assert said == "loader 0: drop_last is True instead of False"


def test_data_that_cannot_be_compared_is_not_taken_on_trust() -> None:
    other = structure(given=[Given("loader 0", step, 8, f"made {step}") for step in range(STEPS)])
    witnesses = replace(WITNESSES, yardstick=examined(evidence(NOISE, structure=other)))
    found = judged(examined(evidence()), witnesses)
    assert found.reasons == ("nothing that the model was given could be compared",)
    assert "loader 0: what it is given depends on the weights" in found.not_compared


def test_arithmetic_beyond_rounding_is_named() -> None:
    found = judged(examined(evidence(320 * NOISE)))
    assert found.reasons == (
        "arithmetic: the gradients differ by 10.0× what rounding explains, and 3 more",
    )
    assert found.closeness == pytest.approx(10.0)


def test_a_gradient_without_a_number_is_named() -> None:
    said = reasons(examined(evidence(None)))
    assert "step 16: the update of w is missing or not a number" in said


def test_no_arithmetic_is_no_equivalence() -> None:
    candidate = examined(evidence(differences=[], forced=[]))
    assert reasons(candidate) == ("the arithmetic of no step could be compared",)


def test_weights_that_could_not_be_loaded_are_named() -> None:
    candidate = examined(evidence(problem="step 13 could not begin"))
    assert reasons(candidate) == ("step 13 could not begin",)


@pytest.mark.parametrize("whose", ["reference", "yardstick"])
def test_why_a_witness_has_nothing_to_compare_with_is_said(whose: str) -> None:
    changes: dict[str, Any] = {}
    changes[whose] = examined(evidence(differences=[], problem="the disk is full"))
    witnesses = replace(WITNESSES, yardstick=examined(evidence(differences=[])))
    candidate = examined(evidence())
    (said,) = reasons(candidate, replace(witnesses, **changes))
    assert said == "the arithmetic of no step could be compared: the disk is full"


def test_a_yardstick_that_is_not_a_number_passes_nothing() -> None:
    witnesses = replace(WITNESSES, yardstick=examined(evidence(None)))
    assert reasons(examined(evidence(1.0)), witnesses) == (
        "the arithmetic of no step could be compared",
    )


def test_a_plan_judged_in_parts_is_the_same_when_every_part_is() -> None:
    good, better = judged(examined(evidence(2 * NOISE))), judged(examined(evidence(NOISE)))
    assert together([good]) == good
    both = together([good, better])
    assert both.same
    assert both.closeness == good.closeness
    assert both.compared == good.compared


def test_a_plan_judged_in_parts_has_the_reasons_of_all_parts_once() -> None:
    bad = judged(examined(evidence(320 * NOISE)))
    nothing = judged(examined(None))
    found = together([bad, judged(examined(evidence())), bad, nothing])
    assert not found.same
    assert found.reasons == (*bad.reasons, *nothing.reasons)
    assert (found.steps, found.forced, found.closeness) == (0, 0, bad.closeness)
