"""Benches that measure nothing: what a plan takes is computed, or looked up, and then disturbed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from hotloop.plan import LeverSetting, Plan
from hotloop.search.candidate import Candidate
from hotloop.search.climb import BudgetSpent
from hotloop.search.score import Score

Law = Callable[[frozenset[str]], float | None]
"""What a plan with these optimisations takes; None: it fails."""


@dataclass
class SimulatedBench:
    law: Law
    noise: float = 0.0
    """The spread between processes."""
    seed: int = 0
    drift: float = 0.0
    """How much slower the machine is from one process to the next."""
    budget: int | None = None
    """Trials until the time is over."""
    once: Mapping[str, float] = field(default_factory=dict)
    """Seconds that an optimisation takes once, and `steps`: of the whole training."""
    steps: int | None = None
    measured: list[tuple[Plan, str, float | None]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    @property
    def spent(self) -> float:
        """A second each."""
        return float(len(self.measured))

    def measure(self, plan: Plan, purpose: str, give_up_above: float | None = None) -> Score:
        if self.budget is not None and len(self.measured) >= self.budget:
            raise BudgetSpent
        self.measured.append((plan, purpose, give_up_above))
        value = self.law(frozenset(words(plan)))
        if value is None:
            return Score(None, "out of memory")
        disturbed = self._random.gauss(0, self.noise) + self.drift * len(self.measured)
        once = sum(self.once.get(word, 0.0) for word in words(plan))
        return Score(value * math.exp(disturbed), once=once, steps=self.steps)


def words(plan: Plan) -> list[str]:
    """Its optimisations, and "compile:reduce-overhead" for one that is not in its first setting."""
    found = []
    for chosen in plan.levers:
        found.append(chosen.lever)
        found += [f"{chosen.lever}:{value}" for value in chosen.setting.values()]
    return found


def plan_of(*levers: str) -> Plan:
    return Plan(tuple(LeverSetting(lever, {}) for lever in levers))


def gains(**each: float) -> Law:
    """A job of a second a step, that each of these makes so many times as fast."""
    return lambda levers: 1 / math.prod(gain for lever, gain in each.items() if lever in levers)


def candidates(**shares: float) -> list[Candidate]:
    return [Candidate(lever, ({},), share) for lever, share in shares.items()]


def plans(law: Law, offered: Sequence[Candidate]) -> dict[frozenset[str], float | None]:
    """All there are."""
    every = [one.lever for one in offered]
    subsets = [
        frozenset(lever for bit, lever in enumerate(every) if number >> bit & 1)
        for number in range(2 ** len(every))
    ]
    return {subset: law(subset) for subset in subsets}


@dataclass(frozen=True)
class Network:
    """A training step as a race: the loader, the CPU that launches kernels, the GPU that runs them.

    A model of why optimisations interact, in milliseconds. Each speeds up one side, some at the
    cost of another, and what is not waited for does not show.
    """

    launching: float
    computing: float
    loading: float = 0.0
    convolutional: bool = True

    def __call__(self, levers: frozenset[str]) -> float:
        loading = self.loading / (4 if "loader_workers" in levers else 1)
        return max(loading, self._launching(levers), self._computing(levers))

    def _launching(self, levers: frozenset[str]) -> float:
        model, optimizer = 0.85 * self.launching, 0.15 * self.launching
        if "compile:reduce-overhead" in levers:
            model *= 0.1
        elif "compile" in levers:
            model *= 0.6
        else:
            model *= 1.5 if "bf16" in levers else 1.0  # a kernel more for every cast
            model *= 1.07 if "channels_last" in levers else 1.0
        return model + optimizer * (0.2 if "fused_optimizer" in levers else 1.0)

    def _computing(self, levers: frozenset[str]) -> float:
        products, rest = 0.6 * self.computing, 0.4 * self.computing
        if "bf16" in levers:
            products, rest = products * 0.4, rest * 0.7
        elif "tf32" in levers:
            products *= 0.6
        if "channels_last" in levers and self.convolutional:
            products *= 0.75 if "bf16" in levers else 1.1
        rest *= 0.5 if "compile" in levers else 1.0
        return products + rest
