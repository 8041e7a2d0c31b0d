"""A plan at work in the job's process: its optimisations applied, and their receipts asked for."""

from __future__ import annotations

import atexit
import os
import sys
from types import ModuleType
from typing import Any

from hotloop.errors import NotApplied
from hotloop.levers.base import Lever, Receipt
from hotloop.levers.registry import LEVERS
from hotloop.runtime.script import ScriptDriver
from hotloop.seams import Seams
from hotloop.trial.spec import RunSpec

STEPS_BEFORE_RECEIPTS = 20
"""Root modules are found in the first steps, and compiled in the next."""


def build(levers: tuple[dict[str, Any], ...]) -> list[Lever]:
    """The parent has checked them; this is only their making."""
    return [LEVERS[entry["lever"]](**entry["setting"]) for entry in levers]


class PlannedRun:
    """`hotloop run --plan`: trains for real, and stops early if the plan does not take effect."""

    def __init__(self, spec: RunSpec) -> None:
        self._keep_going = spec.keep_going
        self._at_once = spec.at_once
        self._levers = build(spec.levers)
        self._steps = 0
        self._checked = False

    def attach(self, torch: ModuleType) -> None:
        self._seams = Seams()
        self._seams.model.at_once = self._at_once
        for lever in self._levers:
            lever.apply(torch, self._seams)
        self._seams.step.after.append(self._count)
        ScriptDriver(torch, self._seams).attach()
        os.register_at_fork(after_in_child=self._seams.silence)
        atexit.register(self._check)

    def _count(self, args: Any, result: Any, began: int) -> None:
        self._steps += 1
        if self._steps == STEPS_BEFORE_RECEIPTS:
            self._seams.step.after.remove(self._count)
            self._check()

    def _check(self) -> None:
        """Once: after some steps, or at the end of a script that makes fewer."""
        if self._checked:
            return
        self._checked = True
        missing = [receipt for lever in self._levers if not (receipt := lever.receipt()).applied]
        for receipt in missing:
            sys.stderr.write(f"hotloop: {_sentence(receipt, self._keep_going)}\n")
        if missing and not self._keep_going:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(NotApplied.exit_code)


def _sentence(receipt: Receipt, keep_going: bool) -> str:
    what = f"The optimisation {receipt.lever} did not take effect: {receipt.reason}."
    if keep_going:
        return f"{what} Training goes on without it."
    return f"{what} Take it out of the plan, or train on without it with --keep-going."
