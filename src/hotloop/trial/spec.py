"""What a child is told before it starts: `spec.json`, plain values that it reads with `json`."""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass
from typing import Any

ASK: int | None = signal.SIGRTMAX - 7 if sys.platform == "linux" else None
"""The signal at which a trial's process writes where it is: none that scripts or libraries use."""
ASKED = "asked.txt"
"""Where, beside the stack."""


@dataclass(frozen=True)
class StopRule:
    """When a trial has seen enough."""

    warm_up: int = 10
    """Steps granted to warming up before the measured ones are counted."""
    warm_up_seconds: float = 8.0
    """Of a slow job whose steps are counted, as many of them as take this long: a few at least."""
    steps: int | None = None
    """Exactly this many measured steps. None: as many as the times below ask for."""
    min_steps: int = 40
    min_seconds: float = 8.0
    """Like the next, from the end of the first step on, so with the warm-up."""
    max_seconds: float = 45.0
    """After this long a slow job has been measured well enough, given `few_steps`."""
    few_steps: int = 5
    give_up_above: float | None = None
    """Seconds a step: a job that turns out slower than this is not measured to the end."""

    @property
    def asked_from(self) -> int:
        """A number of steps is met exactly; a time may be exceeded by a fifth of a second."""
        return sys.maxsize if self.steps is None else self.warm_up + self.steps

    def satisfied(self, steps: int, seconds: float, a_step: float = 0.0) -> bool:
        """`steps` and `seconds` are counted from the end of the first step.

        `a_step`: seconds of one, where it is known that they are many.
        """
        if self.steps is not None:
            return steps >= self._warming_up(a_step) + self.steps
        if seconds >= self.max_seconds:
            return steps >= self.few_steps
        return steps >= self.warm_up + self.min_steps and seconds >= self.min_seconds

    def _warming_up(self, a_step: float) -> int:
        fitting = int(self.warm_up_seconds / a_step) if a_step else self.warm_up
        return min(self.warm_up, max(self.few_steps, fitting))


@dataclass(frozen=True)
class Exam:
    """What a trial is to show of the training. It is then watched closely, and not timed."""

    folder: str
    """Where the reference's weights lie: written by the reference, read by the others."""
    is_reference: bool
    steps: int
    """How many steps of optimizers, all of them counted, to look at."""
    forced: tuple[int, ...]
    """The steps that begin from the reference's weights, and whose arithmetic is compared."""
    noise_bits: int | None = None
    """In forced steps every result is disturbed in this bit of its mantissa: the yardstick."""
    eager_random: bool = False
    """Compiled code draws the random numbers that eager code would."""
    seed: int = 0
    """Added to every seed, for a run that differs by chance alone."""
    at_once: bool = False
    """Models are watched from their first call on: the job may not come to a second step."""
    spare: bool = False
    """Noise in the weights alone, for a job without memory for noise in every operation."""
    aside: bool = False
    """What autograd keeps lies in the host's memory, for a job that has no room for it."""


@dataclass(frozen=True)
class Soak:
    """A trial that is to meet everything a long training meets."""

    batches: int
    """Each pass over a loader is cut to this many batches, of which the last is its own last."""
    passes: int
    """Passes over the training loader that must have begun."""
    load: str
    """State of a plain run, saved earlier, to go on from. Empty: none."""
    save: str
    """Where to leave this run's state, for a plain one to go on from. Empty: nowhere."""


@dataclass(frozen=True)
class Look:
    """A trial that is looked into rather than timed: what is watched during how many steps."""

    folder: str = ""
    """Where a loader's workers leave what they saw: the trial's own, which its launcher knows."""
    warm_up: int = 10
    steps: int = 20
    """Sampled, and for at least these seconds, unless `most_seconds` are over."""
    seconds: float = 4.0
    most_seconds: float = 15.0
    profiled_steps: int = 4
    held_steps: int = 6
    """During which the loader's workers stand still."""
    kept_passes: int = 15
    """Over the data, by a loader that is told to keep its workers."""
    tried_steps: int = 12
    """With fewer threads, and with the job's own, where those are too many; without anomaly
    detection, and with it."""
    counted_steps: int = 2
    """Whose every operator is looked at, which makes them many times slower."""


@dataclass(frozen=True)
class Deep:
    """A trial under a profiler, which nobody times."""

    kind: str
    """"python", "torch" or "kernel"."""
    folder: str
    """The trial's own: where the files lie that other tools open."""
    warm_up: int = 10
    steps: int = 4
    """Under each profiler. They take turns: one would see the other."""
    seconds: float = 3.0
    """For at least this long lines are sampled."""
    most_seconds: float = 30.0
    """Of one turn. A profiler can make a slow job very slow."""


@dataclass(frozen=True)
class RunSpec:
    """A training for real, under a plan: nothing is measured and nothing is shielded."""

    levers: tuple[dict[str, Any], ...]
    """{"lever": name, "setting": {…}}, in the order they are applied."""
    keep_going: bool
    """Train on without an optimisation that does not take effect."""
    at_once: bool = False
    """Models are found at their first call."""


@dataclass(frozen=True)
class TrialSpec:
    result: str
    """Where the child leaves its measurement."""
    progress: str
    """A few bytes, overwritten a few times a second."""
    stack: str
    """Where a script that hangs was, written shortly before its time is over."""
    stop: StopRule
    stack_after: float
    """Seconds after which `stack` is written."""
    limit_seconds: float
    scratch: str
    levers: tuple[dict[str, Any], ...] = ()
    passthrough: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    exam: Exam | None = None
    soak: Soak | None = None
    look: Look | None = None
    deep: Deep | None = None
    at_once: bool = False
    """Models are found at their first call, and not after a step."""
    divisor: int = 1
    """Loaders are built with batches so many times smaller."""
    in_part: bool = True
    """A job that is slow rather than stuck leaves what it has seen before its time is over."""
