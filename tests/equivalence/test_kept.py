from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hotloop.equivalence import kept
from hotloop.equivalence.arithmetic import ONE_TENSOR
from hotloop.equivalence.judge import SAME_MATH, Equivalence, Witnesses, is_difference, judge
from hotloop.equivalence.kept import Kept
from hotloop.evidence import Difference, Evidence, KeptSeen
from tests.equivalence.test_judge import FREE, NOISE, RESEEDED, evidence, examined

STEPS = (FREE, FREE + 3)
SEEN = [KeptSeen(step, tensors=3, changed=2, in_part=0) for step in STEPS]


def mean(
    difference: float | None, tensor: str = "norm.mean", ulp: float = 1e-7
) -> list[Difference]:
    """A tenth is what a step changes of it."""
    return [Difference(step, "change", tensor, 0.1, difference, 1.0, ulp) for step in STEPS]


def counter(changes: Sequence[float] = (1, 1), ahead: float = 0.0) -> list[Difference]:
    """Of steps: one a step, and from 36 on."""
    found = []
    for step, change in zip(STEPS, changes, strict=True):
        found.append(Difference(step, "change", "norm.n", 1.0, abs(change - 1), change, 0.0))
        found.append(Difference(step, "count", "norm.n", 36.0, ahead, (36 + ahead) / 36, 0.0))
    return found


def seen(*differences: Difference, of: Sequence[KeptSeen] | None = SEEN) -> Evidence:
    made = evidence(0.0)
    all_of = [*made.differences, *differences]
    return replace(made, differences=all_of, kept=None if of is None else [*of])


REFERENCE = replace(evidence(differences=[]), kept=SEEN)
YARDSTICK = seen(*mean(NOISE), *counter())


def judged(
    candidate: Evidence, yardstick: Evidence = YARDSTICK, reference: Evidence = REFERENCE
) -> Equivalence:
    witnesses = Witnesses(examined(reference), examined(yardstick), RESEEDED)
    return judge(examined(candidate), witnesses, SAME_MATH)


def test_what_changes_by_no_more_than_rounding_is_the_same_and_is_counted() -> None:
    found = judged(seen(*mean(32 * NOISE), *counter()))
    assert found.same, found.reasons
    assert found.closeness == pytest.approx(32 / (SAME_MATH * ONE_TENSOR))
    assert found.compared[3] == (
        "3 buffers or weights that nothing trains, as the same steps leave them: 2 of them changed"
    )
    assert len(found.not_compared) == 1


def test_a_hundredth_of_a_change_is_named() -> None:
    (said,) = judged(seen(*mean(1e-3), *counter())).reasons
    assert said == "arithmetic: the change of norm.mean differ by 15.6× what rounding explains"
    assert is_difference(said)


def test_what_the_reference_leaves_alone_is_named() -> None:
    """It differs in no yardstick, and rounding explains nothing of it."""
    written = [Difference(FREE, "change", "mask", 0.0, 1.0, 0.0, 0.0)]
    found = judged(seen(*mean(NOISE), *counter(), *written))
    assert found.reasons == (
        "arithmetic: the change of mask differ, and rounding explains nothing of it",
    )
    assert found.closeness is None


def test_one_that_rounding_reaches_beyond_its_last_bit_is_judged_by_that() -> None:
    assert judged(seen(*mean(1e-3), *counter()), seen(*mean(1e-3), *counter())).same


def test_steps_in_which_rounding_decides_a_branch_decide_nothing() -> None:
    three = [*SEEN, KeptSeen(FREE + 5, 3, 2, 0)]
    flipped = [*mean(0.0), Difference(FREE + 5, "change", "norm.mean", 0.1, 0.05, 1.0, 1e-7)]
    noisy = seen(*mean(0.0), *flipped[2:], of=three)
    quiet = replace(noisy, differences=[d for d in noisy.differences if d.step != FREE + 5])
    assert judged(seen(*flipped, of=three), quiet).same


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (counter((2, 2)), "step 13: norm.n changes by 2 instead of 1"),
        (counter((1, 0)), "step 16: norm.n changes by 0 instead of 1"),
        (counter(ahead=1.0), "before step 13: norm.n is 37 instead of 36"),
    ],
)
def test_what_counts_steps_is_exact(numbers: list[Difference], said: str) -> None:
    assert judged(seen(*mean(NOISE), *numbers)).reasons == (said,)


def test_several_that_count_otherwise_are_named_once() -> None:
    def of(differences: list[Difference]) -> list[Difference]:
        return [*differences, *(replace(one, tensor="other.n") for one in differences)]

    (said,) = judged(seen(*of(counter((2, 2)))), seen(*of(counter()))).reasons
    assert said == "step 13: norm.n changes by 2 instead of 1, and 1 more"


def test_a_whole_number_that_depends_on_rounding_is_no_counter() -> None:
    """Of codes that are in use, say: a rounding decides which one is the nearest."""
    assert judged(seen(*counter((2, 2))), seen(*counter((2, 2)))).same
    assert judged(seen(*counter(ahead=1.0)), seen(*counter(ahead=2.0))).same


def test_one_that_does_not_change_by_as_much_each_step_is_no_counter() -> None:
    once = [replace(one, reference=3.0) if one.step > FREE else one for one in counter()]
    ahead = [replace(one, difference=1.0) if one.quantity == "count" else one for one in once]
    assert judged(seen(*ahead), seen(*once)).same


def test_a_buffer_that_is_lost_is_named() -> None:
    said = judged(seen(*mean(None), *counter())).reasons
    assert "step 16: the change of norm.mean is missing or not a number" in said


@pytest.mark.parametrize("whose", ["candidate", "yardstick"])
def test_buffers_that_nobody_compared_are_not_taken_on_trust(whose: str) -> None:
    there, here = YARDSTICK, YARDSTICK
    if whose == "candidate":
        here = seen(of=[])
    else:
        there = seen(of=[])
    found = judged(here, there)
    assert found.reasons == (kept.NOT_COMPARED,)
    assert not is_difference(kept.NOT_COMPARED)


def test_a_job_that_keeps_nothing_has_nothing_to_compare() -> None:
    none = [KeptSeen(step, 0, 0, 0) for step in STEPS]
    found = judged(seen(of=none), seen(of=none), replace(REFERENCE, kept=none))
    assert found.same
    assert not any("buffer" in said for said in (*found.compared, *found.not_compared))


def test_of_an_earlier_hotloop_it_is_said_that_nobody_looked() -> None:
    found = judged(seen(of=None), seen(of=None), replace(REFERENCE, kept=None))
    assert found.same
    assert "earlier hotloop did not look" in found.not_compared[-1]


def test_what_was_compared_in_part_and_what_rounding_hides_is_said() -> None:
    part = [replace(one, in_part=2) for one in SEEN]
    hidden = seen(*mean(0.01), *counter(), of=part)
    assert judged(hidden, hidden).not_compared[1:] == (
        "all numbers of 2 large buffers or untrained weights: some of each were",
        "what steps change in 1 of these buffers: rounding alone changes as much",
    )


def test_a_yardstick_that_is_not_a_number_measures_nothing() -> None:
    assert Kept(seen(*mean(1.0)), seen(*mean(None)), SAME_MATH).closeness() == []
