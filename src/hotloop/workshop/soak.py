"""Whether a plan survives what a long training meets, and leaves checkpoints that anybody can use.

Three runs: the plain job, which leaves its state; the job under the plan, which goes on from there
and leaves its own; and the plain job again, which goes on from that. Where the plan delivers other
data in a second pass, one more shows whether two runs of the plain job deliver the same.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hotloop.equivalence.second_pass import second_pass
from hotloop.evidence import SoakSeen
from hotloop.plan import Plan
from hotloop.study import Soaked
from hotloop.trial.outcome import steps_made
from hotloop.trial.spec import Soak
from hotloop.trial.trial import State, Trial

BATCHES = 8
"""More than the steps it takes to find the models, so that a pass has some to spare."""
PASSES = 2
PURPOSE = "soak"
NOT_BORNE = "the plain job does not bear a soak"

SHORT = "the last, short batch"
SECOND = "a second epoch"
SAME = "the plain job's batches in it"
EVALUATION = "evaluation"
PLAIN = "the plain job"
THERE = f"a checkpoint of {PLAIN} loaded under the plan"
BACK = f"a checkpoint of the plan loaded in {PLAIN}"
DIFFERS = "the same batches in it, which two runs of the plain job are not seen to have"
CUT = "shortened epochs, which the plain job does not bear"

Run = Callable[[Plan, Soak, str], Trial]
"""Runs one trial: under this plan, with this to meet, for this purpose."""


def soak(plan: Plan, run: Run, folder: Path, start: Plan | None = None) -> Soaked:
    """`folder`: the study's own, where states lie for as long as it takes. `start`: what stands for
    the plain job where that does not run.

    They stay when it is interrupted: what goes on later goes on from them. Each plan has its own:
    one that was soaked before takes nothing from another that was interrupted.
    """
    whose = f"{zlib.crc32(repr(plan.levers).encode()):08x}"
    states = folder / f"soak-{whose}-plain.pt", folder / f"soak-{whose}-planned.pt"
    soaked = _soak(plan, start or Plan(), run, *map(str, states))
    for state in states:
        state.unlink(missing_ok=True)
    return soaked


def _soak(plan: Plan, start: Plan, run: Run, plain_state: str, planned_state: str) -> Soaked:
    order = Soak(BATCHES, PASSES, load="", save=plain_state)
    plain = run(start, order, PURPOSE)
    if plain.state not in (State.COMPLETE, State.INTERRUPTED):
        order = replace(order, batches=0)
        plain = run(start, order, PURPOSE)
    if plain.state is not State.COMPLETE:
        return Soaked(False, f"{NOT_BORNE}: {_clause(plain.reason)}")
    before = _seen(plain)
    load = plain_state if before.saved else ""
    planned = run(plan, replace(order, load=load, save=planned_state), PURPOSE)
    after = _seen(planned)
    reason = _why_not(planned, plain)
    second, is_own = second_pass(before, after), False
    if second.differs and not reason:
        # From other weights, as the plan has them: data may depend on these as well.
        again = replace(order, load=load, save="")
        is_own = not load or not second_pass(before, _seen(run(start, again, PURPOSE))).is_same
        reason = "" if is_own else f"under the plan {second.differs} holds other data"
    back = SoakSeen()
    if after.saved and not reason:
        last = run(start, replace(order, load=planned_state, save=""), PURPOSE)
        reason, back = _why_not_back(last, planned), _seen(last)
    met, not_met = _met(after, back, start, second.is_same)
    if is_own:
        not_met = tuple(DIFFERS if what == SAME else what for what in not_met)
    if not order.batches:
        not_met += (CUT,)
    if before.problem:
        not_met += (f"a checkpoint at all ({before.problem})",)
    return Soaked(not reason, reason, met, not_met)


def _why_not(planned: Trial, plain: Trial) -> str:
    if planned.state is not State.COMPLETE:
        return f"under the plan: {_clause(planned.reason)}"
    if _not_finite(planned) and not _not_finite(plain):
        return "under the plan a loss is no longer finite"
    seen, before = _seen(planned), _seen(plain)
    if seen.problem:
        return f"under the plan: {seen.problem}"
    if before.saved and not seen.loaded and _batches(planned) < _batches(plain):
        steps = f"{_batches(plain):.0f} steps"
        return f"under the plan it did not come as far as the plain job, {steps}"
    has_its_size = planned.own_batches == 1  # of others the last one need not be short
    if before.short_batch and has_its_size and seen.passes >= PASSES and not seen.short_batch:
        return "under the plan the last, short batch is not trained on"
    if before.saved and not seen.saved:
        return "under the plan there is no state to save"
    return ""


def _why_not_back(last: Trial, planned: Trial) -> str:
    if last.state is not State.COMPLETE:
        return f"the plain job does not go on from the plan's state: {_clause(last.reason)}"
    if problem := _seen(last).problem:
        return f"the plain job does not take the plan's state: {problem}"
    if _seen(planned).loaded and not _seen(last).loaded:
        return "the plain job did not come to load the plan's state"
    return ""


def _met(
    planned: SoakSeen, back: SoakSeen, start: Plan, is_same: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the plan came through, and what the script was not seen to have."""
    whose = " + ".join(one.lever for one in start.levers)
    plain = f"the job with {whose}" if whose else PLAIN
    all_of_it = {
        SHORT: planned.short_batch,
        SECOND: planned.passes >= PASSES,
        **({SAME: is_same} if planned.passes >= PASSES and planned.delivered is not None else {}),
        EVALUATION: planned.evaluation,
        THERE.replace(PLAIN, plain): planned.loaded,
        BACK.replace(PLAIN, plain): back.loaded,
    }
    met = tuple(what for what, was in all_of_it.items() if was)
    return met, tuple(what for what in all_of_it if what not in met)


def _seen(trial: Trial) -> SoakSeen:
    return trial.soak or SoakSeen()


def _not_finite(trial: Trial) -> bool:
    return trial.measurement is not None and trial.measurement.losses.not_finite > 0


def _batches(trial: Trial) -> float:
    """Steps made, each for as many of the job's own batches as it took."""
    return steps_made(trial.measurement) * trial.own_batches if trial.measurement else 0.0


def _clause(sentence: str) -> str:
    """To stand after a colon."""
    return sentence[:1].lower() + sentence[1:].rstrip(".")
