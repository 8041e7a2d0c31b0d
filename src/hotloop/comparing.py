"""`hotloop compare`: did a change make the job slower? Two studies, or several of either side.

The unit is the process. Steps of one process agree with each other and disagree with the next, so
an interval over steps would find changes that are not there. The studies were not made in turn, so
their processes are not pairs: what processes of one side differ by is taken to be what they differ
by on the other, and the interval is that of two independent samples of logarithms.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hotloop import stats
from hotloop.errors import NotComparable
from hotloop.figures import step_times
from hotloop.search.compare import RISK
from hotloop.study import Study
from hotloop.trial.trial import State, Trial

AS_IT_IS = ("", "repeat", "baseline", "proof")
"""What trials are run for that time a job; those under a plan of a search are left out."""


class Verdict(StrEnum):
    SLOWER = "slower"
    FASTER = "faster"
    THE_SAME = "the same"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True)
class Group:
    """The processes of one side."""

    step_seconds: tuple[float, ...]
    """Of each process: the mean over its steady steps."""
    memory: int | None
    """Peak bytes, in the median."""

    @property
    def typical(self) -> float:
        return statistics.geometric_mean(self.step_seconds)


@dataclass(frozen=True)
class Compared:
    verdict: Verdict
    before: Group
    after: Group
    ratio: float
    """How many times as long a step takes as before: above 1 it is slower."""
    low: float | None
    high: float | None
    """None where there are too few processes for an interval."""
    threshold: float
    differences: tuple[str, ...] = ()
    """What is not the same on both sides, where that was to be overlooked."""

    @property
    def beyond(self) -> bool:
        """Slower, as far as the interval shows, and by more than the threshold."""
        return self.verdict is Verdict.SLOWER and self.ratio > 1 + self.threshold

    @property
    def may_be_beyond(self) -> bool:
        """A slow-down beyond the threshold cannot be excluded."""
        return self.high is None or self.high > 1 + self.threshold


def compare(
    before: Sequence[Study], after: Sequence[Study], threshold: float, anyway: bool = False
) -> Compared:
    """Raises NotComparable where a number would mislead; `anyway`: says so, and compares."""
    differences = tuple(dict.fromkeys(_differences([*before, *after])))
    if differences and not anyway:
        raise NotComparable(
            f"These studies cannot be compared: {'; '.join(differences)}.",
            "Make both on one machine with the same versions, or compare all the same with"
            " --anyway.",
        )
    groups = [_group(studies) for studies in (before, after)]
    return judged(groups[0], groups[1], threshold, differences)


def judged(
    before: Group, after: Group, threshold: float, differences: tuple[str, ...] = ()
) -> Compared:
    logs = [[math.log(seconds) for seconds in each.step_seconds] for each in (before, after)]
    ratio = after.typical / before.typical
    interval = stats.difference_interval(logs[0], logs[1], RISK)
    low = math.exp(interval.low) if interval else None
    high = math.exp(interval.high) if interval else None
    verdict = _verdict(low, high, threshold)
    return Compared(verdict, before, after, ratio, low, high, threshold, differences)


def _verdict(low: float | None, high: float | None, threshold: float) -> Verdict:
    if low is None or high is None:
        return Verdict.CANNOT_TELL
    if low > 1:
        return Verdict.SLOWER
    if high < 1:
        return Verdict.FASTER
    within = 1 / (1 + threshold) <= low and high <= 1 + threshold
    return Verdict.THE_SAME if within else Verdict.CANNOT_TELL


def _group(studies: Sequence[Study]) -> Group:
    timed = [trial for study in studies for trial in study.trials if _is_timed(study, trial)]
    found = [(step_times(trial.measurement), trial) for trial in timed if trial.measurement]
    seconds = tuple(times.step.mean for times, _ in found if times is not None)
    if not seconds:
        raise NotComparable(
            f"No run of {studies[0].job.shown} in these studies was timed to its end.",
            "Compare studies that hotloop profile or hotloop optimize have made.",
        )
    peaks = [trial.measurement.memory.peak for _, trial in found if trial.measurement]
    known = [size for size in peaks if size is not None]
    return Group(seconds, round(statistics.median(known)) if known else None)


def _is_timed(study: Study, trial: Trial) -> bool:
    """A profile times one plan, which may be none; of a search the job as it is counts."""
    of_search = study.found is not None and not trial.plan.is_empty
    return trial.state is State.COMPLETE and trial.purpose in AS_IT_IS and not of_search


def _differences(studies: Sequence[Study]) -> Iterator[str]:
    """All against the first, each in a few words."""
    first = _facts(studies[0])
    for study in studies[1:]:
        for what, value in _facts(study).items():
            if value != first[what]:
                yield f"another {what} ({first[what]}, {value})"


def _facts(study: Study) -> dict[str, str]:
    """What a step's time depends on, the code apart: that is what is asked about."""
    machine = study.machine
    seen = [trial.measurement.software for trial in study.trials if trial.measurement]
    software = next((each for each in seen if each.torch), None)
    plan = study.trials[0].plan if study.trials and study.found is None else None
    return {
        "job": " ".join(study.job.words),
        "processor": f"{machine.cpu}, {machine.cores} cores",
        "GPU": ", ".join(gpu.name for gpu in machine.gpus) or "none",
        "driver": machine.driver or "none",
        "device": software.device if software else "unknown",
        "torch": software.torch if software else "unknown",
        "Python": software.python if software else "unknown",
        "hotloop": study.hotloop,
        "plan": " + ".join(one.lever for one in plan.levers) if plan and plan.levers else "none",
    }
