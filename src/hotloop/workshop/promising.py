"""Which optimisations are worth a trial on a job, by what was measured of it, and which are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hotloop.diagnose import base
from hotloop.diagnose.diagnosis import Diagnosis
from hotloop.figures import Figures, training_loader
from hotloop.inspection import Inspection
from hotloop.levers.base import Effect, Expectation, Seen
from hotloop.levers.registry import LEVERS
from hotloop.machine import Machine
from hotloop.measurement import Measurement
from hotloop.search.candidate import Candidate
from hotloop.study import Options, Refused, too_small
from hotloop.suggest import LEAST_SHARE

HOW_FAR = list(Effect)
"""From what changes least to what changes most."""


ONLY_IF_FOUND = frozenset({"threads", "cache_dataset", "stage_data", "allocator"})
"""What a rule of the diagnosis looks for exactly. Where that found nothing, a trial would not."""
IN_SIGHT = 20.0
"""Times as fast: few jobs become that."""


def promising(
    measurement: Measurement,
    figures: Figures,
    cores: int,
    options: Options,
    diagnosis: Diagnosis | None = None,
    inspection: Inspection | None = None,
    machine: Machine | None = None,
    given: Sequence[str] = (),
) -> tuple[tuple[Candidate, ...], tuple[Refused, ...]]:
    """The most promising first, and the others with the reason. `given`: what the job runs with."""
    by_time = options.objective != "memory"
    predicted = predictions(diagnosis) if by_time else {}  # findings are about time
    loader = training_loader(measurement)
    seen = Seen(measurement, figures, loader, cores, inspection, objective=options.objective)
    seen = replace(seen, only=options.only)
    if diagnosis is not None and diagnosis.numbers.gpu_busy is not None:
        seen = replace(seen, gpu_idle=1 - diagnosis.numbers.gpu_busy)
    if machine is not None:
        seen = replace(seen, physical_cores=machine.physical_cores, nodes=machine.nodes)
    wanted = {*predicted, *(needed for name in predicted for needed in LEVERS[name].requires)}
    candidates: list[Candidate] = []
    refused: list[Refused] = []
    for name, lever in LEVERS.items():
        effect, why = lever.effect_on(seen)
        reason = out_of_bounds(name, effect, options, why)
        reason = reason or ("" if by_time else lever.not_for_memory)
        expected = lever.expected(seen)
        settings = () if reason or expected.reason else tuple(lever.settings(seen))
        reason = reason or expected.reason
        worth_from = expected.worth_from if by_time else 1.0
        if by_time and not reason and name not in wanted and worth_from == 1:
            worth_from, reason = _hope(name, expected, diagnosis)
        if reason or not settings:
            refused.append(Refused(name, reason or "no setting of it is left to try", tried=False))
        else:
            dear = tuple(lever.dear_settings(seen)) if options.thorough else ()
            candidates.append(
                Candidate(
                    name,
                    settings,
                    expected.share if by_time or expected.of_memory else 0.0,
                    predicted.get(name),
                    dear,
                    tuple(lever.late_changes(seen)),
                    effect is Effect.CHANGES_TRAINING,
                    worth_from,
                )
            )
    refused += (lacking := _lacking(candidates, given))
    candidates = [one for one in candidates if one.lever not in {gone.lever for gone in lacking}]
    if all(one.worth_from > 1 for one in candidates):  # then nothing will make the job faster
        refused += [Refused(one.lever, too_small(one.share), tried=False) for one in candidates]
        return (), tuple(refused)
    first = sorted(
        candidates, key=lambda one: (one.worth_from, -(one.predicted or 0.0), -one.share)
    )
    return tuple(first), tuple(refused)


def _lacking(candidates: Sequence[Candidate], given: Sequence[str]) -> list[Refused]:
    """Those without what they need: nothing would come of a trial."""
    there = {*given, *(one.lever for one in candidates)}
    needs = {one.lever: {*LEVERS[one.lever].requires} - there for one in candidates}
    return [
        Refused(lever, f"it needs {', '.join(sorted(lacking))}, which is not tried", tried=False)
        for lever, lacking in needs.items()
        if lacking
    ]


def predictions(diagnosis: Diagnosis | None) -> dict[str, float]:
    """What each optimisation would win by the findings that it addresses: the largest of them.

    Where one would win next to nothing, the finding does not speak for it.
    """
    limits = [one for one in diagnosis.findings if one.is_limit] if diagnosis else []
    won: dict[str, float] = {}
    for finding in limits:
        for lever in finding.levers:
            won[lever] = max(won.get(lever, 0.0), finding.won_by(lever))
    return {lever: share for lever, share in won.items() if share >= base.LEAST_SHARE}


def _hope(name: str, expected: Expectation, diagnosis: Diagnosis | None) -> tuple[float, str]:
    """Of one that no finding speaks for: how fast the job must be before it is worth a trial.

    Or why no such job is in sight.
    """
    if diagnosis is not None and name in ONLY_IF_FOUND:
        return 1.0, "nothing that was found speaks for it"
    # Of a job that was looked into more is known than what a lever could win at the very most.
    least = LEAST_SHARE if diagnosis is None else base.LEAST_SHARE
    if expected.share * IN_SIGHT < least:
        return 1.0, too_small(expected.share)
    return max(1.0, least / expected.share), ""


def out_of_bounds(name: str, effect: Effect, options: Options, why: str = "") -> str:
    """Why the user does not want it; empty when they do."""
    if options.only and name not in _with_needed(options.only):
        return "not among --only"
    if name in options.skip:
        return "left out by --skip"
    if HOW_FAR.index(effect) > HOW_FAR.index(Effect(options.effect)):
        here = f"{effect} here ({why})" if why else effect
        return f"{here} is more than --effect allows"
    return ""


def _with_needed(only: tuple[str, ...]) -> set[str]:
    """Whoever wants one wants what it cannot be without."""
    needed = {name for lever in only for name in LEVERS[lever].requires}
    return {*only, *needed} if needed <= {*only} else _with_needed((*only, *needed))
