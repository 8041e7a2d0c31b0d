"""A job trained in the caller's own program: its plan applied for as long as that takes."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from hotloop import plan
from hotloop.errors import NotApplied, PlanError
from hotloop.job import ScriptJob
from hotloop.levers.base import Lever
from hotloop.levers.registry import LEVERS
from hotloop.runtime.owned.loop import Epoch, Loop, Trained
from hotloop.runtime.owned.program import tell
from hotloop.runtime.planned import STEPS_BEFORE_RECEIPTS
from hotloop.runtime.script import ScriptDriver
from hotloop.seams import Seams
from hotloop.training_job import TrainingJob

if TYPE_CHECKING:
    from hotloop.plan import LeverSetting, Plan


def train(
    job: TrainingJob, settings: Sequence[LeverSetting], keep_going: bool, quiet: bool
) -> Trained:
    import torch

    told = _nothing if quiet else tell
    if not settings:
        return Loop(torch, job).train(told)
    levers = [LEVERS[one.lever](**one.setting) for one in settings]
    with _applied(torch, levers, keep_going):
        return Loop(torch, job).train(told)


def require_same(chosen: Plan, kind: type[TrainingJob]) -> None:
    """The plan, made for this file, torch and GPU; what it does not say is not asked."""
    if not chosen.is_empty:
        import torch

        gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else ""
        # A class that inherits from the one that the plan was found for may have its plan.
        family = [_source_digest(one) for one in kind.__mro__[:-1]]
        script = chosen.script if chosen.script in family else family[0]
        try:
            plan.require_same(chosen, script, torch.__version__, gpu)
        except PlanError as error:
            remedy = "Make a new plan, or pass anyway=True."
            raise PlanError(error.sentence, remedy) from None


def _source_digest(kind: type) -> str:
    """Empty for a class of a package, as plans have it, and where there is no file."""
    try:
        path = inspect.getfile(kind)
    except (OSError, TypeError):
        return ""
    return ScriptJob(path, "." in kind.__module__, (), "", "").source_digest()


@contextmanager
def _applied(torch: Any, levers: list[Lever], keep_going: bool) -> Iterator[None]:
    """What torch itself was set to (threads, say) stays so; what was intercepted is put back."""
    seams, receipts = Seams(), _Receipts(levers, keep_going)
    with _environment(levers):
        for lever in levers:
            lever.apply(torch, seams)
        seams.step.after.append(receipts.count)
        driver = ScriptDriver(torch, seams)
        driver.attach()
        os.register_at_fork(after_in_child=seams.silence)
        try:
            yield
            receipts.check()
        finally:
            driver.detach()
            seams.silence()


class _Receipts:
    """Asked for once: after some steps, or at the end of a training that makes fewer."""

    def __init__(self, levers: list[Lever], keep_going: bool) -> None:
        self._levers = levers
        self._keep_going = keep_going
        self._steps = 0
        self._asked = False

    def count(self, args: Any, result: Any, began: int) -> None:
        self._steps += 1
        if self._steps == STEPS_BEFORE_RECEIPTS:
            self.check()

    def check(self) -> None:
        if self._asked:
            return
        self._asked = True
        missing = [receipt for lever in self._levers if not (receipt := lever.receipt()).applied]
        for receipt in missing:
            what = f"The optimisation {receipt.lever} did not take effect: {receipt.reason}."
            if not self._keep_going:
                raise NotApplied(what, "Take it out of the plan, or pass keep_going=True.")
            sys.stderr.write(f"hotloop: {what} Training goes on without it.\n")


@contextmanager
def _environment(levers: list[Lever]) -> Iterator[None]:
    """Variables that are read when CUDA starts do their work only if it has not started yet; the
    receipt of whoever needs them tells."""
    wanted = {name: value for lever in levers for name, value in lever.environment().items()}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _nothing(epoch: Epoch) -> None:
    """Told of each epoch when nobody wants to hear of it."""
