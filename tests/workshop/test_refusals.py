from __future__ import annotations

from dataclasses import replace

from hotloop.evidence import NOT_BEGUN, NOT_ENDED
from hotloop.plan import Plan
from hotloop.search.candidate import Candidate
from hotloop.search.climb import Climb, Tried
from hotloop.search.compare import Pair, compare
from hotloop.search.parts import Contribution
from hotloop.search.proof import Proof
from hotloop.search.score import Score
from hotloop.study import Found, Options, Refused
from hotloop.trial.trial import State
from hotloop.workshop.refusals import refusals
from tests import builders
from tests.simulated import plan_of

SAME, FASTER = (compare([Pair(before, 1.0)] * 5) for before in (1.0, 2.0))


def tried(*levers: str, reason: str) -> Tried:
    return Tried(plan_of(*levers), levers[-1], Score(1.0), 1.0, not reason, reason)


def test_what_was_never_tried_comes_first_and_costs_nothing() -> None:
    never = Refused("tf32", "there is no GPU", tried=False)
    climb = Climb(Plan(), (tried("bf16", reason="worse"),), untried=("compile",))
    found = Found(Options(), refused=(never,), climb=climb)
    screen = builders.trial(purpose="screen", plan=plan_of("bf16"), seconds=3.0)
    proof = builders.trial(purpose="proof", plan=plan_of("bf16"), seconds=5.0)
    assert refusals(found, {}, (screen, proof)) == (
        never,
        Refused("compile", "no time was left for a trial and its proof", tried=False),
        Refused("bf16", "worse", tried=True, cost=3.0),
    )


def test_what_stands_in_for_another_says_so() -> None:
    found = Found(Options(), climb=Climb(Plan(), (), spared=("compile_blocks",)))
    reason = "it stands in for compile, which could be measured"
    assert refusals(found, {}, ()) == (Refused("compile_blocks", reason, tried=False),)


def test_what_another_does_as_well_says_so() -> None:
    steps = (tried("bf16", reason=""),)
    found = Found(Options(), climb=Climb(plan_of("bf16"), steps, spared=("tf32",)))
    assert refusals(found, {}, ())[0] == Refused("tf32", "bf16 leaves it nothing to do", False)


def test_what_is_in_the_plan_is_not_refused() -> None:
    steps = (tried("bf16", reason=""), tried("bf16", "compile", reason=""))
    found = Found(Options(), climb=Climb(plan_of("bf16", "compile"), steps), plan=plan_of("bf16"))
    assert [one.lever for one in refusals(found, {}, ())] == ["compile"]


def test_one_that_was_kept_and_not_proven_says_so_whatever_its_other_settings_did() -> None:
    steps = (tried("bf16", reason=""), tried("bf16", reason="worse"))
    found = Found(Options(), climb=Climb(plan_of("bf16"), steps))
    assert refusals(found, {}, ())[0].reason == "it helped in one run, but nothing was proven"
    found = replace(found, proof=Proof(plan_of("bf16"), SAME, (), (), 0.0))
    assert refusals(found, {}, ())[0].reason == f"it was not proven to help: {SAME.reason}"


def test_a_passenger_is_called_one_unless_it_changes_the_training() -> None:
    proof = Proof(plan_of("compile"), FASTER, (), (Contribution("bf16", SAME),), 0.0)
    climb = Climb(plan_of("bf16", "compile"), (tried("bf16", reason=""),))
    found = Found(Options(), climb=climb, proof=proof, plan=plan_of("compile"))
    (passenger,) = refusals(found, {}, ())
    assert passenger.reason == f"it was not shown to add to the plan: {SAME.reason}"
    (last,) = refusals(found, {"bf16": "step 1 is missing"}, ())
    assert last.reason == "it changes the training: step 1 is missing"


def test_what_could_not_be_compared_is_not_called_a_change() -> None:
    climb = Climb(plan_of("bf16"), (tried("bf16", reason=""),))
    for why in (
        "nothing that the model was given could be compared",
        "the arithmetic of no step could be compared",
        "the yardstick could not be examined: The budget left it 9 s, which did not do.",
        f"step 361 {NOT_BEGUN}: the size of tensor a must match the size of tensor b",
        f"step 361 {NOT_ENDED}: no such file",
    ):
        (last,) = refusals(Found(Options(), climb=climb), {"bf16": why}, ())
        assert last.reason == f"it was not shown to train the same: {why}"


def test_of_one_whose_trial_failed_it_is_said_where_its_output_lies() -> None:
    reason = "The script failed after 2 steps: ValueError: no."
    crash = builders.trial(
        purpose="screen",
        plan=plan_of("bf16"),
        state=State.CRASHED,
        reason=reason,
        log="trial-4/log",
    )
    others = (
        replace(crash, plan=plan_of("compile"), log="trial-5/log"),
        replace(crash, state=State.NOT_APPLIED, log="trial-6/log"),
        replace(crash, reason="The script was killed by SIGSEGV.", log="trial-7/log"),
    )
    steps = (tried("bf16", reason=reason), tried("tf32", reason="worse"))
    found = Found(Options(), climb=Climb(Plan(), steps))
    told = refusals(found, {"fp16": "step 1 is missing"}, (crash, *others))
    assert [(one.lever, one.log) for one in told] == [
        ("bf16", "trial-4/log"),
        ("tf32", ""),
        ("fp16", ""),
    ]


def test_so_it_is_of_one_that_failed_while_it_was_examined() -> None:
    reason = "The script failed after 2 steps: ValueError: no."
    crash = builders.trial(purpose="exam", plan=plan_of("bf16"), state=State.CRASHED, reason=reason)
    found = Found(Options(), climb=Climb(Plan(), ()))
    (told,) = refusals(found, {"bf16": "the script failed after 2 steps: ValueError: no"}, (crash,))
    assert told.log == "trial-1/output.log"


def test_what_stayed_too_little_says_how_little() -> None:
    small = Candidate("fused_optimizer", ({},), 0.006, worth_from=8.3)
    found = Found(
        Options(), candidates=(small,), climb=Climb(Plan(), (), small=("fused_optimizer",))
    )
    reason = "it could win 0.6% of a step at the very most"
    assert refusals(found, {}, ()) == (Refused("fused_optimizer", reason, tried=False),)
