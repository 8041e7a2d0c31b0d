"""An examined trial, put together: chance pinned, structure noted, some steps compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotloop.evidence import Evidence
from hotloop.runtime.exam import randomness
from hotloop.runtime.exam.rounding import Rounding
from hotloop.runtime.exam.structure import StructureProbe
from hotloop.runtime.exam.teacher import Teacher
from hotloop.runtime.watching import Watch
from hotloop.trial.spec import Exam

LONGEST_ROUND = 20
"""Steps of all optimizers together, after which a comparison is broken off."""


class Examination:
    def __init__(self, torch: Any, watch: Watch, exam: Exam, enough: Callable[[], None]) -> None:
        self._torch = torch
        self._watch = watch
        self._exam = exam
        self._enough = enough
        numbers = watch.inventory.numbers
        self._structure = StructureProbe(torch, numbers, self._stepped, exam.at_once)
        self._teacher = Teacher(torch, Path(exam.folder), exam.is_reference, len(exam.forced))
        self._rounding = Rounding(torch, exam.noise_bits) if exam.noise_bits is not None else None
        self._counts: Counter[int] = Counter()
        """Of every optimizer's steps."""
        self._begun = self._first = 0
        """How many comparisons, and the first step of the latest."""
        self._comparing = False
        self._drawn: Any = None
        self._draws = False

    def attach(self) -> None:
        randomness.pin(self._torch, self._exam.seed, self._exam.eager_random)
        seams = self._watch.seams
        seams.model.at_once = seams.model.at_once or self._exam.at_once
        self._structure.attach(seams)
        seams.model.before.append(self._call)
        seams.model.after.append(self._called)
        seams.step.before.append(self._step)

    def evidence(self) -> Evidence:
        return Evidence(
            structure=self._structure.structure,
            differences=self._teacher.differences,
            forced=self._teacher.forced,
            draws=self._draws,
            problem=self._teacher.problem,
            kept=self._teacher.kept,
        )

    def _call(self, args: Any, kwargs: Any) -> None:
        watched = self._exam.is_reference and not self._draws and self._torch.is_grad_enabled()
        self._drawn = randomness.drawn(self._torch) if watched else None
        if self._rounding is not None:
            self._rounding.inside_learning = self._torch.is_grad_enabled()

    def _called(self, args: Any, result: Any, began: int) -> None:
        if self._drawn is not None:
            self._draws = randomness.drawn(self._torch) != self._drawn
        if self._rounding is not None:
            self._rounding.inside_learning = False

    def _step(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._teacher.mark(self._watch.inventory.numbers["optimizer"].of(args[0]), args[0])
        if self._rounding is not None:
            self._rounding.before_step()

    def _stepped(self, optimizer: Any, number: int) -> None:
        """A step has been made or skipped; the next one may have to begin from elsewhere."""
        done = self._structure.steps
        self._teacher.meet(number, optimizer)
        self._counts[number] += 1
        ends_round = self._ends_round(number)
        if self._comparing:
            if self._structure.structure.steps[-1].taken:  # a scaler's skip has no arithmetic
                self._teacher.end(done - 1, number)
            if self._is_over(done, ends_round):
                self._end_comparing()
        if self._begins(done, ends_round):
            self._compare_next(done)
        if done >= self._exam.steps and not self._comparing:
            self._enough()

    def _ends_round(self, number: int) -> bool:
        """Whether all optimizers have had their turn: the one that steps least, and last, has.

        Within a round a graph may be alive: a generator's output, while its critic steps.
        """
        return number == min(self._counts, key=lambda one: (self._counts[one], -one))

    def _begins(self, done: int, ends_round: bool) -> bool:
        if not self._exam.is_reference:
            return bool(self._exam.forced) and self._teacher.has(done)
        due = sum(step <= done for step in self._exam.forced)
        return ends_round and due > self._begun

    def _is_over(self, done: int, ends_round: bool) -> bool:
        return ends_round or done >= self._exam.steps + LONGEST_ROUND

    def _compare_next(self, done: int) -> None:
        self._begun += 1
        self._first = done
        self._comparing = True
        roots = self._roots()
        self._teacher.begin(done, roots)
        if self._rounding is not None:
            weights = [weight for root in roots for weight in root.parameters()]
            self._rounding.begin(weights, self._exam.spare or any(map(_is_compiled, roots)))

    def _end_comparing(self) -> None:
        self._comparing = False
        if self._rounding is not None:
            self._rounding.end()
        steps = self._structure.structure.steps[self._first :]
        if all(step.taken for step in steps):  # what follows a step that was skipped differs
            self._teacher.end_round(self._first, self._roots())

    def _roots(self) -> list[Any]:
        alive = [known() for known in self._watch.driver.roots.roots]
        return [root for root in alive if root is not None]


def _is_compiled(root: Any) -> bool:
    return hasattr(root, "_orig_mod") or getattr(root, "_compiled_call_impl", None) is not None
