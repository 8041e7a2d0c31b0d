"""A choice held against all that could have been chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hotloop.experiments.base import Case, Measured
from hotloop.experiments.lab import Lab

RIVALS = 3
"""The fastest of all others are measured again, beside what was chosen: the best of a hundred
single measurements is the luckiest of them, too."""


@dataclass(frozen=True)
class Check:
    """What was chosen and the fastest of all, in the same rounds."""

    chosen: Measured
    fastest: Measured
    every: int
    """Settings that were run."""

    @property
    def behind(self) -> float | None:
        """The share by which the choice is slower. None: it did not come to its end again."""
        mine, most = self.chosen.rate, self.fastest.rate
        return 1 - mine / most if mine and most else None

    @property
    def sentence(self) -> str:
        if self.behind is None:
            return f"All {self.every} were run, but the chosen one failed the second time."
        if self.chosen is self.fastest:
            return f"All {self.every} were run: none is faster."
        return (
            f"All {self.every} were run: the fastest is {self.fastest.case.label}. In "
            f"{len(self.chosen.runs)} rounds of both the choice is {self.behind:.1%} behind it."
        )

    @property
    def told(self) -> dict[str, Any]:
        return {
            "optimum": self.fastest.case.label,
            "behind": self.behind,
            "chosen_rate": self.chosen.rate,
            "optimum_rate": self.fastest.rate,
            "rounds": len(self.chosen.runs),
        }


def against_all(lab: Lab, chosen: Case, others: Sequence[Case]) -> Check:
    """`others`: every other case, the fastest first, as each was measured once."""
    again = lab.measure([chosen, *others[:RIVALS]])
    fastest = max(again, key=lambda one: one.rate or 0.0)
    return Check(again[0], fastest, 1 + len(others))
