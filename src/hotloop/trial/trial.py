"""One job under one plan in one fresh process, and how it ended. A failure is a result too."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from hotloop.depth import DepthReport
from hotloop.energy import PowerLog
from hotloop.evidence import Evidence, SoakSeen
from hotloop.inspection import Inspection
from hotloop.levers.base import Receipt
from hotloop.measurement import Measurement
from hotloop.plan import Plan
from hotloop.trial.company import Company
from hotloop.trial.result import Failure


class State(StrEnum):
    COMPLETE = "complete"
    OUT_OF_MEMORY = "out_of_memory"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    INTERRUPTED = "interrupted"
    NOT_APPLIED = "not_applied"
    NOTHING_MEASURED = "nothing_measured"


@dataclass(frozen=True)
class Shielding:
    """What kept the user's files as they were."""

    way: str = "none"
    """"overlay": the kernel did. "savers": Python's and torch's ways to write did."""
    why_not_overlay: str | None = None
    kept_apart: tuple[str, ...] = ()
    """What the script wrote, renamed or deleted, and what therefore never happened."""
    unshielded: tuple[str, ...] = ()
    """What was seen to reach the user's files all the same, or might have."""


@dataclass(frozen=True)
class Trial:
    number: int
    plan: Plan
    state: State
    reason: str
    """Empty when complete; otherwise one sentence."""
    seconds: float
    exit_status: int | None
    """As the shell would show it; None when we ended the process."""
    signal: str | None = None
    failure: Failure | None = None
    measurement: Measurement | None = None
    receipts: tuple[Receipt, ...] = ()
    hung_at: str = ""
    """Where a script that ran out of time was."""
    shielding: Shielding = field(default_factory=Shielding)
    log: str = ""
    """What the script printed: a file, relative to the study."""
    purpose: str = ""
    """What it was run for: "baseline", "screen", "proof", "reference", …"""
    evidence: Evidence | None = None
    """Of a trial that was examined rather than timed."""
    tied_to: str = ""
    """The name of the weights or of the state that it began from, or has saved, in its study: only
    beside trials that share them it tells anything."""
    soak: SoakSeen | None = None
    inspection: Inspection | None = None
    """Of a trial that was looked into rather than timed."""
    deep: DepthReport | None = None
    """Of a trial under a profiler."""
    power: PowerLog | None = None
    """What the GPU drew meanwhile. None without a GPU, or where it does not tell."""
    company: Company | None = None
    """What else kept the cores busy meanwhile. None where nobody says, and of a trial that is not
    timed."""
    ran_out: bool = False
    """The script came to its own end before enough had been seen."""
    portion: float = 1.0
    """Of its seconds: for how many a search has waited, where other trials ran beside it."""

    def is_for(self, plan: Plan, purpose: str, tied_to: str | None = None) -> bool:
        """Whether it answers the same question."""
        is_same = self.purpose == purpose and self.plan.levers == plan.levers
        return is_same and tied_to in (None, self.tied_to)

    @property
    def cost(self) -> float:
        """Seconds of the time that a search may take."""
        return self.seconds * self.portion

    @property
    def own_batches(self) -> float:
        """How many of the job's own batches a step takes: one, unless a plan has changed the size.

        What a step took is divided by it, so that times are always for as many samples.
        """
        for receipt in self.receipts:
            if receipt.lever == "batch_size" and receipt.applied:
                before, now = (receipt.evidence[name] for name in ("samples_before", "samples"))
                return float(now) / float(before)
        return 1.0
