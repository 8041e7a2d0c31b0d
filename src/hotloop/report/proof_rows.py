"""The proof: every pair of processes, the interval over them, and what would have counted."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.report.waterfall_rows import Gain, gain
from hotloop.search import compare
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


def rows(study: Study) -> Proven | None:
    """None where nothing came so far."""
    proof = study.found.proof if study.found else None
    if proof is None or not proof.comparison.pairs:
        return None
    found = proof.comparison
    ratios = tuple(pair.baseline / pair.candidate for pair in found.pairs)
    return Proven(found.faster, found.reason, gain(found), ratios, compare.counts(proof.floor))
