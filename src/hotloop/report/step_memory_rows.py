"""What memory holds over a step, by kind, as plain rows: from the run that was looked into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from hotloop import units
from hotloop.inspection import StepMemory
from hotloop.report.breakdown_rows import Breakdown
from hotloop.study import Study

KINDS = ("weights", "optimizer", "gradients", "activations", "rest")
"""From the bottom up: what stays first, what comes and goes last."""
NAMES = {
    "weights": "weights",
    "optimizer": "optimizer",
    "gradients": "gradients",
    "activations": "activations",
    "rest": "the rest",
}
PHASES = {"data": "loading", "forward": "forward", "backward": "backward", "optimizer": "optimizer"}
ON_GPU = (
    "All that torch's allocator had handed out, after each operator of one step, run without "
    "compilation. The rest: batches, what the backward pass needs for a moment, workspaces."
)
ON_HOST = (
    "Tensors of the job, after each operator of one step, run without compilation. What was made "
    "before the step, such as a dataset, and what Python and libraries hold is not known, and is "
    "not in it."
)
AS_TIMED = (
    " Phases are as long as they were timed, but for waiting; operators of a phase are drawn "
    "equally far apart."
)
WAITING = 0.08
"""Of the rest of a step, what waiting for data takes of the drawing at most: nothing happens."""


@dataclass(frozen=True)
class Moment:
    at: float
    """Seconds into a step; or operators, where no step was timed."""
    phase: str
    held: tuple[int, ...]
    """Bytes, one a kind."""

    @property
    def together(self) -> int:
        return sum(self.held)


@dataclass(frozen=True)
class Stretch:
    """Of a step, in one phase."""

    phase: str
    begin: float
    end: float


@dataclass(frozen=True)
class StepCourse:
    where: str
    """"GPU" or "host"."""
    timed: bool
    """Whether moments are told in seconds."""
    length: float
    moments: tuple[Moment, ...]
    stretches: tuple[Stretch, ...]
    note: str

    @property
    def highest(self) -> Moment:
        return max(self.moments, key=lambda moment: moment.together)


def rows(study: Study, breakdowns: Sequence[Breakdown]) -> StepCourse | None:
    """None where no run was looked into, or it had no model to follow."""
    for trial in study.trials:
        seen = trial.inspection.step_memory if trial.inspection else None
        if seen is not None and seen.total:
            return _course(_settled(seen), breakdowns[0] if breakdowns else None)
    return None


def highest_words(found: StepCourse) -> str:
    """ "At its highest, in the backward pass: weights 44.6 MiB, …"."""
    top = found.highest
    kinds = ", ".join(
        f"{NAMES[kind]} {units.size(size)}" for kind, size in zip(KINDS, top.held, strict=True)
    )
    return f"At its highest, {_during(top.phase)}, {units.size(top.together)}: {kinds}."


def _during(phase: str) -> str:
    words = {"data": "while loading", "optimizer": "in the optimizer's step"}
    return words.get(phase, f"in the {phase} pass")


def _course(seen: StepMemory, timed: Breakdown | None) -> StepCourse:
    lasts = {part.phase: part.seconds for part in timed.parts} if timed else {}
    others = sum(seconds for phase, seconds in lasts.items() if phase in PHASES and phase != "data")
    lasts["data"] = min(lasts.get("data", 0.0), WAITING * others)
    known = others > 0 and all(lasts.get(phase) for phase in set(seen.phase) - {"data"})
    stretches = tuple(_stretches(seen, lasts if known else {}))
    places = _places(seen, stretches)
    moments = tuple(
        Moment(at, phase, held)
        for at, phase, held in zip(places, seen.phase, _held(seen), strict=True)
    )
    on_gpu = seen.device != "cpu"
    note = (ON_GPU if on_gpu else ON_HOST) + (AS_TIMED if known else "")
    length = stretches[-1].end if stretches else 1.0
    return StepCourse("GPU" if on_gpu else "host", known, length, moments, stretches, note)


def _held(seen: StepMemory) -> Iterator[tuple[int, ...]]:
    columns = zip(
        seen.weights, seen.optimizer, seen.gradients, seen.activations, seen.total, strict=True
    )
    for *kinds, total in columns:
        # An allocator that was told to forget knows less than was followed.
        yield *kinds, max(total - sum(kinds), 0)


def _runs(seen: StepMemory) -> list[tuple[str, list[int]]]:
    """Which moments lie in the same phase, one after the other."""
    numbered = groupby(range(len(seen.phase)), key=lambda at: seen.phase[at])
    return [(phase, list(places)) for phase, places in numbered]


def _settled(seen: StepMemory) -> StepMemory:
    """What happens to gradients before the optimizer steps is its business, as in `timeline`."""
    phases = list(seen.phase)
    runs = _runs(seen)
    for before, (phase, places), after in zip(runs, runs[1:], runs[2:], strict=False):
        if (before[0], phase, after[0]) == ("backward", "forward", "optimizer"):
            phases[places[0] : places[-1] + 1] = ["optimizer"] * len(places)
    return replace(seen, phase=phases)


def _stretches(seen: StepMemory, lasts: dict[str, float]) -> Iterator[Stretch]:
    """Each as long as its phase was timed, shared out by operators; or by operators alone."""
    runs = _runs(seen)
    last = [seen.operator[places[-1]] for _, places in runs[:-1]]
    edges = [0, *last, seen.operators]
    counts = [max(after - before, 1) for before, after in pairwise(edges)]
    of_phase: dict[str, int] = {}
    for (phase, _), count in zip(runs, counts, strict=True):
        of_phase[phase] = of_phase.get(phase, 0) + count
    at = 0.0
    for (phase, _), count in zip(runs, counts, strict=True):
        share = lasts.get(phase, 0.0) * count / of_phase[phase] if lasts else float(count)
        yield Stretch(phase, at, at + share)
        at += share


def _places(seen: StepMemory, stretches: Sequence[Stretch]) -> list[float]:
    found = []
    for (_, places), stretch in zip(_runs(seen), stretches, strict=True):
        for number, _ in enumerate(places, start=1):
            found.append(stretch.begin + (stretch.end - stretch.begin) * number / len(places))
    return [0.0, *found[1:]]  # the first was seen before any operator ran
