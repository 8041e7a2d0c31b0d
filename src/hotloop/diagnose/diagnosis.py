"""What limits a job: every rule asked, what overlaps told apart, and the rest ranked."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.diagnose.base import Case, Effort, Finding, times_as_fast
from hotloop.diagnose.checklist import Point, checklist
from hotloop.diagnose.footprint import WORLD_AVERAGE
from hotloop.diagnose.lever_gains import with_gains
from hotloop.diagnose.numbers import Numbers, numbers
from hotloop.diagnose.registry import RULES
from hotloop.diagnose.wording import in_a_sentence, seconds

WEIGHTS = {Effort.SETTING: 1.0, Effort.LINES: 0.95, Effort.REWRITE: 0.85}
"""Of two that could win about as much, the one that is done sooner stands first."""

COMPUTING = ("forward", "backward", "optimizer")

MOSTLY = 0.5
"""Of a step. Of one that trains for less than that, nobody says that it is the training itself."""

MUCH_MORE = 1.5
"""Times what a finding's own remedy wins: then what wins it belongs in the verdict, too."""

AT_ONCE = 0.1
"""Seconds of a training, from its first event to its last. To import torch takes ten times as
long, and so do worker processes, a compiler, or whatever else a finding would speak for."""

EXPLAINED_BY = {
    "launch_bound": ("python_loop", "microbatches", "optimizer_bound", "tiny_batch", "side_work"),
    "tiny_batch": ("python_loop", "microbatches", "optimizer_bound"),
    "evaluation": ("evaluation_with_gradients",),
    "too_few_threads": ("waiting_for_data",),
}
"""Who says the same more exactly. The general one is left out where such a one costs as much."""

BEFORE = {"evaluation_with_gradients": "evaluation"}
"""A mistake in the same passes is told first: mended it costs nothing, and then less is left."""


@dataclass(frozen=True)
class Diagnosis:
    verdict: str
    """One sentence."""
    findings: tuple[Finding, ...]
    """Limits first, by what could be won; then remarks."""
    checklist: tuple[Point, ...]
    numbers: Numbers


def diagnose(case: Case, grams_per_kwh: float = WORLD_AVERAGE) -> Diagnosis:
    """`grams_per_kwh`: of CO₂, by which what the GPU draws is turned into an estimate."""
    brief = _brief(case)
    rules = () if brief else RULES
    found = [finding for rule in rules if (finding := rule(case)) is not None]
    ranked = tuple(with_gains(case, one) for one in in_order(unexplained(found)))
    return Diagnosis(
        verdict=brief or _verdict(case, ranked),
        findings=ranked,
        checklist=checklist(case, ranked),
        numbers=numbers(case, grams_per_kwh),
    )


def _brief(case: Case) -> str:
    """What is said of a training that is over at once, and of which nothing else needs saying."""
    times_ns = case.measurement.events.time_ns
    whole = (times_ns[-1] - times_ns[0]) / 1e9
    if not case.ran_out or whole >= AT_ONCE:
        return ""
    return (
        f"The whole training takes {seconds(whole)} and ends by itself: nobody would notice a gain."
    )


def unexplained(found: list[Finding]) -> list[Finding]:
    """Without those that only repeat, in general, what another says exactly."""
    shares = {finding.rule: finding.share for finding in found}
    return [
        finding
        for finding in found
        if not any(
            shares.get(other, 0.0) >= finding.share / 2
            for other in EXPLAINED_BY.get(finding.rule, ())
        )
    ]


def in_order(found: list[Finding]) -> list[Finding]:
    worth = {one.rule: one.share * WEIGHTS[one.effort] for one in found}

    def order(one: Finding) -> tuple[bool, float, bool]:
        other = BEFORE.get(one.rule, "")
        return not one.is_limit, -max(worth[one.rule], worth.get(other, 0.0)), other not in worth

    return sorted(found, key=order)


def _mended(finding: Finding) -> str:
    """What that would win; and where one of its optimisations would win much more, that too.

    Not "without that": a title names what something takes, and a remedy seldom wins just as much.
    """
    lever = max(finding.gains, key=finding.won_by, default="")
    gain = times_as_fast(finding.won_by(lever))
    mended = f"with that mended the job would be {finding.gain:.1f}× as fast"
    much_more = gain > MUCH_MORE * finding.gain
    return f"{mended}, with {lever} instead about {gain:.1f}×" if much_more else mended


def _verdict(case: Case, findings: tuple[Finding, ...]) -> str:
    if findings and findings[0].is_limit:
        return f"{in_a_sentence(findings[0].title)}: {_mended(findings[0])}."
    roof = next((finding for finding in findings if finding.rule == "at_the_roof"), None)
    if roof is not None:
        return f"{roof.title}."
    frozen = next((finding for finding in findings if finding.rule == "frozen_model"), None)
    if frozen is not None:
        return f"Nothing stands out, but {in_a_sentence(frozen.title)}."
    computing = _computing(case)
    if computing < MOSTLY:
        between = next((finding for finding in findings if finding.rule == "between_passes"), None)
        only = f"Nothing stands out, though only {computing:.0%} of a step is training."
        return only if between is None else f"{between.title}."
    return f"Nothing stands out: {computing:.0%} of a step is the training itself."


def _computing(case: Case) -> float:
    """By the GPU's clock where there is one: its CPU may wait anywhere for what it has queued."""
    if not case.figures.gpu_phases:
        return case.share(*COMPUTING)
    return sum(phase.share for phase in case.figures.gpu_phases if phase.phase in COMPUTING)
