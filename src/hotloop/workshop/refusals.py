"""Everything that is not in the plan: what never could help, what did not, and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from hotloop.equivalence.judge import is_difference
from hotloop.plan import Plan
from hotloop.search.climb import Climb
from hotloop.search.interactions import MAKES_NEEDLESS, names, stood_for
from hotloop.search.proof import Proof
from hotloop.study import NO_TIME, Found, Refused, too_small
from hotloop.trial.trial import State, Trial

NOT_EXAMINED = "it helped, but there was no time left to show that the training stays the same"
SHORT_LIVED = "helped, but does not survive a long training"
FAILED = (State.CRASHED, State.OUT_OF_MEMORY, State.TIMED_OUT)


def refusals(
    found: Found,
    excluded: Mapping[str, str],
    trials: Sequence[Trial],
    unexamined: Sequence[str] = (),
    unfit: Mapping[str, str] = MappingProxyType({}),
) -> tuple[Refused, ...]:
    """`excluded`: optimisations that change the training, and how. `unexamined`: not known.
    `unfit`: those that break a long one, and how.
    """
    reasons = _not_shown_to_help(found)
    reasons |= {lever: _not_the_same(why) for lever, why in excluded.items()}
    reasons |= {lever: f"it {SHORT_LIVED}: {why}" for lever, why in unfit.items()}
    reasons |= dict.fromkeys(unexamined, NOT_EXAMINED)
    kept = {one.lever for one in (found.plan or Plan()).levers}
    climb = found.climb or Climb(Plan(), ())
    return (
        *(one for one in found.refused if not one.tried),
        *(Refused(lever, NO_TIME, tried=False) for lever in climb.untried),
        *(Refused(lever, _needless(lever, climb), tried=False) for lever in climb.spared),
        *(
            Refused(one.lever, too_small(one.share), tried=False)
            for one in found.candidates
            if one.lever in climb.small
        ),
        *(
            Refused(lever, reason, True, _cost(lever, found, trials), _log(lever, reason, trials))
            for lever, reason in reasons.items()
            if lever not in kept
        ),
    )


def nothing_found(found: Found, excluded: Mapping[str, str], unfit: Mapping[str, str]) -> str:
    """What a search says that ends without a plan."""
    climbed, options = found.climb, found.options
    last = climbed.tried if climbed else ()
    # The last climb was without what is known to change the training, or to break it.
    tried = {*excluded, *unfit, *(name for one in last for name in one.lever.split("+"))}
    goal = "faster" if options.objective == "speed" else "smaller"
    words = {0: "no optimisation", 1: "1 optimisation"}
    count = words.get(len(tried), f"{len(tried)} optimisations")
    nothing = f"Nothing was found that makes this job {goal}: {count} tried."
    if excluded:
        nothing = (
            f"Nothing that makes this job {goal} was shown to leave its training alone: "
            f"{count} tried."
        )
    short_lived = "".join(f" {lever} {SHORT_LIVED}: {why}." for lever, why in unfit.items())
    left = len(climbed.untried) if climbed and options.budget else 0
    them = "it" if left == 1 else "them"
    more = f" For {left} more the time was too short: a larger --budget tries {them}."
    return f"{nothing}{short_lived}{more if left else ''}"


def _not_the_same(why: str) -> str:
    if is_difference(why):
        return f"it changes the training: {why}"
    return f"it was not shown to train the same: {why}"


def _needless(lever: str, climb: Climb) -> str:
    """By what was kept when its turn came, which may have made room for a better one since."""
    plans = [climb.plan, *(one.plan for one in climb.tried if one.kept)]
    kept = {name: None for plan in plans for name in names(plan)}
    if by := next((name for name in kept if lever in MAKES_NEEDLESS.get(name, ())), ""):
        return f"{by} leaves it nothing to do"
    return f"it stands in for {stood_for(lever)}, which could be measured"


def _not_shown_to_help(found: Found) -> dict[str, str]:
    """The last word on each: in a climb, in what it led to, in the proof."""
    climb, proof = found.climb or Climb(Plan(), ()), found.proof
    reasons = {
        lever: one.reason or "it helped until what was kept later took its place"
        for one in climb.tried
        for lever in one.lever.split("+")
    }
    reasons |= dict.fromkeys((one.lever for one in climb.plan.levers), _unproven(proof))
    removed = proof.removed if proof else ()
    added = "it was not shown to add to the plan"
    return reasons | {one.lever: f"{added}: {one.comparison.reason}" for one in removed}


def _unproven(proof: Proof | None) -> str:
    if proof is None:
        return "it helped in one run, but nothing was proven"
    if proof.comparison.faster:
        return "it was proven to help, but no plan is handed out"
    return f"it was not proven to help: {proof.comparison.reason}"


def _cost(lever: str, found: Found, trials: Sequence[Trial]) -> float:
    """Of the trials that tried it."""
    tried = found.climb.tried if found.climb else ()
    plans = [one.plan.levers for one in tried if lever in one.lever.split("+")]
    screens = [trial for trial in trials if trial.purpose == "screen"]
    return sum(trial.seconds for trial in screens if trial.plan.levers in plans)


def _log(lever: str, reason: str, trials: Sequence[Trial]) -> str:
    """Of the failure that the reason tells of; empty where it tells of none."""
    told = reason.casefold()
    failed = [
        trial.log
        for trial in trials
        if trial.state in FAILED
        and any(one.lever == lever for one in trial.plan.levers)
        and trial.reason.rstrip(".").casefold() in told
    ]
    return failed[-1] if failed else ""
