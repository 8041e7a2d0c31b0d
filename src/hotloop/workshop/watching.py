"""Who is told how a search goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hotloop.plan import Plan
from hotloop.study import Study
from hotloop.trial.order import Glimpse
from hotloop.trial.trial import Trial


@dataclass(frozen=True)
class Outlook:
    """What a search is going to do, said once the job as it is has been measured."""

    runs: tuple[int, int]
    """Runs of the script, at the least and at the most."""
    seconds: tuple[float, float]
    to_prove: float = 0.0
    """Seconds without which nothing can be handed out."""


class Audience(Protocol):
    def planned(self, study: Study, outlook: Outlook) -> None:
        """Once: the job has been measured as it is, and this is what could be tried."""

    def began(self, number: int, purpose: str, plan: Plan) -> None: ...

    def glimpsed(self, glimpse: Glimpse) -> None:
        """Several times a second. May raise KeyboardInterrupt to stop."""

    def ended(self, trial: Trial, study: Study) -> None:
        """The study already holds the trial."""
