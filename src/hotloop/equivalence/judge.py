"""Does a plan do the same training as the job without it? Fails closed.

Three questions, each answered from trials of their own. Is the structure the same, exactly? Is the
arithmetic of single steps the same, but for rounding? Does it learn as well when left alone?
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hotloop.equivalence import arithmetic, free_run, kept, structure
from hotloop.evidence import NOT_BEGUN, NOT_ENDED, Evidence
from hotloop.trial.trial import State, Trial

NOT_COMPARED = "the arithmetic of no step could be compared"
NOTHING_GIVEN = "nothing that the model was given could be compared"
NOT_EXAMINED = "could not be examined"
SAME_MATH = 32.0
"""Times the yardstick, one rounding an operation: a sum of many terms is rounded many times."""
LOWER_PRECISION = 3.0
"""Of a format's own rounding, which is coarse enough to outweigh the order of summation."""
FINE = 20
"""Bits of a mantissa from which on the order of summation is what counts."""


@dataclass(frozen=True)
class Equivalence:
    same: bool
    reasons: tuple[str, ...]
    """What differs, named; empty when same."""
    steps: int
    """Over how many steps the structure was compared."""
    forced: int
    """How many of them began from the reference's own weights, and were compared by arithmetic."""
    compared: tuple[str, ...]
    """What was looked at, in sentences."""
    not_compared: tuple[str, ...]
    """What was not."""
    closeness: float | None = None
    """The largest difference in the arithmetic, in units of what would still pass: below 1."""
    changed: tuple[str, ...] = ()
    """Optimisations that change the training by their own account, left out of the comparison."""
    against: str = ""
    """What it was compared with. Empty: the job as it is, on its own batches."""


@dataclass(frozen=True)
class Witnesses:
    """The trials that a candidate is compared with."""

    reference: Trial
    """The job as it is."""
    yardstick: Trial
    """The same with noise of one rounding."""
    reseeded: tuple[Trial, ...] = ()
    """The same from other seeds."""

    @property
    def others(self) -> tuple[Trial, ...]:
        """Trainings as good as the job's own."""
        return self.yardstick, *self.reseeded


def judge(
    candidate: Trial,
    witnesses: Witnesses,
    factor: float,
    regroups: bool = False,
    hides_model: bool = False,
) -> Equivalence:
    """`factor`: how many times the yardstick may be exceeded. `regroups`: whether the plan may take
    the samples of a step in other passes. `hides_model`: whether steps are replayed."""
    regroups = regroups or hides_model
    if regroups:
        candidate, witnesses = _regrouped(candidate, witnesses, hides_model)
    trials = (witnesses.reference, witnesses.yardstick, candidate)
    for trial, whose in zip(trials, ("the job as it is", "the yardstick", "it"), strict=True):
        if trial.state is not State.COMPLETE or trial.evidence is None:
            return _nothing(f"{whose} {NOT_EXAMINED}: {_why_not(trial, trial is candidate)}")
    streams = structure.exact_streams(
        _evidence(witnesses.reference).structure, _evidence(witnesses.yardstick).structure
    )
    untrained = kept.Kept(_evidence(candidate), _evidence(witnesses.yardstick), factor)
    near = arithmetic.closeness(
        _evidence(candidate).differences, _evidence(witnesses.yardstick).differences, factor
    )
    all_near = sorted([*near, *untrained.closeness()], key=lambda one: -one.ratio)
    reasons = (
        *free_run.differences(candidate, witnesses.reference, witnesses.others),
        *_structure(candidate, witnesses.reference, streams, regroups),
        *_arithmetic(candidate, witnesses, bool(near)),
        *_beyond(all_near),
        *untrained.differences(),
    )
    return Equivalence(
        same=not reasons,
        reasons=reasons,
        steps=structure.steps_made(_evidence(candidate)),
        forced=structure.steps_forced(_evidence(candidate)),
        compared=_compared(candidate, witnesses, streams, regroups),
        not_compared=_not_compared(candidate, witnesses, streams, untrained.hidden()),
        closeness=all_near[0].ratio if near and math.isfinite(all_near[0].ratio) else None,
    )


def _regrouped(
    candidate: Trial, witnesses: Witnesses, hides_model: bool
) -> tuple[Trial, Witnesses]:
    def by_step(trial: Trial) -> Trial:
        if trial.evidence is None:
            return trial
        found = structure.regrouped(trial.evidence.structure, hides_model)
        return replace(trial, evidence=replace(trial.evidence, structure=found))

    return by_step(candidate), replace(
        witnesses,
        reference=by_step(witnesses.reference),
        yardstick=by_step(witnesses.yardstick),
    )


def is_difference(reason: str) -> bool:
    """Or does it only say why none could be looked for?"""
    if (
        reason.startswith((NOT_COMPARED, NOTHING_GIVEN, kept.NOT_COMPARED))
        or NOT_EXAMINED in reason
    ):
        return False
    return not any(problem in reason for problem in (NOT_BEGUN, NOT_ENDED))


def factor_for(bits: int) -> float:
    """How far from the reference is still the same, in units of a yardstick of so many bits."""
    return SAME_MATH if bits >= FINE else LOWER_PRECISION


def together(parts: Sequence[Equivalence]) -> Equivalence:
    """Of a plan that was judged in parts, each by what it claims."""
    last = parts[-1]
    distances = [part.closeness for part in parts if part.closeness is not None]
    return Equivalence(
        same=all(part.same for part in parts),
        reasons=_once(reason for part in parts for reason in part.reasons),
        steps=min(part.steps for part in parts),
        forced=min(part.forced for part in parts),
        compared=_once(said for part in parts for said in part.compared),
        not_compared=_once(said for part in parts for said in part.not_compared),
        closeness=max(distances, default=last.closeness),
    )


def nothing_to_compare(changed: tuple[str, ...]) -> Equivalence:
    """Of a plan that consists of what changes the training by its own account, and was allowed."""
    return Equivalence(True, (), 0, 0, (), ("anything",), changed=changed)


def _why_not(trial: Trial, is_candidate: bool) -> str:
    """What a plan is compared with has run before, or nothing would be compared with it."""
    ran = " When it was only timed it did not" if trial.state is State.CRASHED else ""
    return trial.reason + (ran if not is_candidate else "") or "no evidence"


def _nothing(reason: str) -> Equivalence:
    return Equivalence(False, (reason,), 0, 0, (), ("anything",))


def _structure(
    candidate: Trial, reference: Trial, streams: list[str], regroups: bool
) -> Iterator[str]:
    then, now = _evidence(reference).structure, _evidence(candidate).structure
    if not then.steps:
        yield "no step was seen, so there is nothing to compare"
        return
    yield from structure.step_differences(then, now, regroups)
    yield from structure.setting_differences(then, now)
    if streams:
        yield from structure.batch_differences(then, now, streams)
    else:
        yield NOTHING_GIVEN
    if reference.measurement is not None and candidate.measurement is not None:
        yield from structure.loader_differences(
            reference.measurement.inventory.loaders, candidate.measurement.inventory.loaders
        )


def _arithmetic(candidate: Trial, witnesses: Witnesses, is_near: bool) -> Iterator[str]:
    evidence = _evidence(candidate)
    problems = [_evidence(trial).problem for trial in (witnesses.reference, witnesses.yardstick)]
    unknown = kept.not_judged(
        evidence, _evidence(witnesses.reference), _evidence(witnesses.yardstick)
    )
    if evidence.problem:
        yield evidence.problem
    elif not is_near:
        why = next((f": {problem}" for problem in problems if problem), "")
        yield f"{NOT_COMPARED}{why}"
    elif unknown:
        yield unknown
    yield from list(arithmetic.lost(evidence.differences))[:1]


def _beyond(near: list[arithmetic.Closeness]) -> Iterator[str]:
    beyond = [one for one in near if one.ratio > 1]
    if beyond:
        worst = beyond[0]
        more = f", and {len(beyond) - 1} more" if len(beyond) > 1 else ""
        by = f" by {worst.ratio:.1f}× what rounding explains"
        how = by if math.isfinite(worst.ratio) else ", and rounding explains nothing of it"
        yield f"arithmetic: {worst.what} differ{how}{more}"


def _compared(
    candidate: Trial, witnesses: Witnesses, streams: list[str], regroups: bool
) -> tuple[str, ...]:
    evidence = _evidence(candidate)
    trained = [one for one in evidence.differences if one.quantity in arithmetic.QUANTITIES]
    count = len({one.tensor for one in trained})
    tensors = "1 tensor" if count == 1 else f"{count} tensors"
    batches = sum(given.stream in streams for given in evidence.structure.given)
    passes = "" if regroups else "their backward passes, "
    lines = [
        f"{structure.steps_made(evidence)} steps: their number, {passes}and every "
        f"setting of every parameter group",
        *([f"{batches} batches by checksum ({'; '.join(streams)})"] if streams else []),
        f"gradients and updates of {tensors} in {structure.steps_forced(evidence)} steps that "
        "began from the same weights, against noise of one rounding",
        *kept.compared(evidence),
    ]
    if witnesses.reseeded:
        lines.append(f"the loss of a free run against {len(witnesses.reseeded)} other seeds")
    return tuple(lines)


def _not_compared(
    candidate: Trial, witnesses: Witnesses, streams: list[str], hidden: int
) -> tuple[str, ...]:
    all_given = _evidence(witnesses.reference).structure.given
    others = sorted({given.stream for given in all_given} - set(streams))
    lines = ["the random numbers themselves: seeds were fixed and dropout was off on both sides"]
    if others:
        lines.append(f"{'; '.join(others)}: what it is given depends on the weights")
    if _augments(witnesses.reference):
        lines.append("the job's augmentation, which was off on both sides")
    lines += kept.not_compared(_evidence(candidate), _evidence(witnesses.reference), hidden)
    skipped = structure.skipped(_evidence(candidate).structure)
    if skipped:
        lines.append(f"{skipped} steps that the gradient scaler skipped")
    return tuple(lines)


def _augments(trial: Trial) -> bool:
    loop = trial.measurement.inventory.loop if trial.measurement else None
    return loop is not None and loop.augments


def _evidence(trial: Trial) -> Evidence:
    return trial.evidence or Evidence()


def _once(sentences: Iterator[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(sentences))
