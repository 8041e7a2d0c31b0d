"""Two steps kernel by kernel, where the GPU's own record was taken: its idle gaps as they were."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter

from hotloop import timeline
from hotloop.diagnose.kernel_kinds import Work, work
from hotloop.inspection import Kernels
from hotloop.report.two_steps import COPIES, GPU, Bar, Lane, TwoSteps, Window, cpu_lane
from hotloop.study import Study
from hotloop.trial.trial import Trial

COPYING = (Work.COPY_IN, Work.COPY_OUT)
FINEST = 800
"""A gap of less than this part of the window is narrower than what can be seen."""
NOTE = (
    "From the run that was looked into, which slows down the CPU and with it the queueing of work, "
    "but not the kernels."
)


def rows(study: Study) -> TwoSteps | None:
    """None where there is no GPU, or its record could not be read."""
    for trial in study.trials:
        kernels = trial.inspection.kernels if trial.inspection else None
        if kernels is not None and kernels.start_ns and trial.measurement is not None:
            return _two_steps(trial, kernels)
    return None


def _two_steps(trial: Trial, kernels: Kernels) -> TwoSteps | None:
    assert trial.measurement is not None
    events = trial.measurement.events
    ends = [events.time_ns[index] for index in timeline.step_ends(events)]
    first = bisect_left(ends, kernels.begin_ns)
    inside = [end for end in ends[first : first + 3] if end <= kernels.end_ns]
    if len(inside) < 3:
        return None
    window = Window(inside[0], inside[1], inside[2])
    lanes = (
        cpu_lane(trial.measurement, window),
        _merged(COPIES, kernels, window, copies=True),
        _merged(GPU, kernels, window, copies=False),
    )
    return window.steps("as it is, kernel by kernel", lanes, NOTE, timed=False)


def _merged(lane: str, kernels: Kernels, window: Window, copies: bool) -> Lane:
    """What follows so closely that no gap could be seen is one bar."""
    finest = (window.end_ns - window.begin_ns) / FINEST
    bars: list[Bar] = []
    names: Counter[str] = Counter()
    begin, end = 0, -1
    for which, start, lasts in zip(
        kernels.name, kernels.start_ns, kernels.duration_ns, strict=True
    ):
        kind = work(kernels.names[which])
        if (kind in COPYING) is not copies or not window.begin_ns <= start < window.end_ns:
            continue
        if names and start - end > finest:
            bars += _bar(window, begin, end, names, copies)
            names.clear()
        begin = begin if names else start
        end = max(end, start + lasts) if names else start + lasts
        names[kind.value] += 1
    return Lane(lane, tuple(bars + (_bar(window, begin, end, names, copies) if names else [])))


def _bar(window: Window, begin: int, end: int, names: Counter[str], copies: bool) -> list[Bar]:
    count, mostly = names.total(), names.most_common(1)[0][0]
    label = mostly if count == 1 else f"{count} kernels, most of them {mostly}"
    bar = window.bar(begin, end, "copy" if copies else "kernel", label)
    return [bar] if bar is not None else []
