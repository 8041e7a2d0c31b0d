"""The proof: every pair of processes, the interval over them, and what would have counted."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from hotloop.report.waterfall_rows import Gain, gain
from hotloop.search import compare
from hotloop.search.compare import Comparison
from hotloop.study import Study


@dataclass(frozen=True)
class Proven:
    faster: bool
    reason: str
    """Why not; empty when faster."""
    gain: Gain | None
    ratios: tuple[float, ...]
    """Of each pair, in the order they ran."""
    counts: float
    """The least gain that would have counted here."""
    disturbed: str = ""
    """Which pairs did not count, if any."""


def rows(study: Study) -> Proven | None:
    """None where nothing came so far."""
    proof = study.found.proof if study.found else None
    if proof is None or not proof.comparison.pairs:
        return None
    found = proof.comparison
    ratios = tuple(pair.baseline / pair.candidate for pair in found.pairs)
    least, left_out = compare.counts(proof.floor), disturbed(found)
    return Proven(found.faster, found.reason, gain(found), ratios, least, left_out)


def disturbed(found: Comparison) -> str:
    """Such as "a pair in which the job as it is took 13.6× as long as usual"."""
    if not found.disturbed or not found.pairs:
        return ""
    usual = statistics.median(pair.baseline for pair in found.pairs)
    worst = max(pair.baseline for pair in found.disturbed) / usual
    if len(found.disturbed) == 1:
        return f"a pair in which the job as it is took {worst:.1f}× as long as usual"
    many = len(found.disturbed)
    return f"{many} pairs in which the job as it is took up to {worst:.1f}× as long as usual"
