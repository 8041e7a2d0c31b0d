"""A trial's process, from the inside: attach, watch, and leave a result before anything can fail.

The result is written when enough was seen, when the script ends, or when it calls `os._exit`;
whichever comes first. Having seen enough ends the process at once: no `except BaseException` can
catch it, and no `finally` of the script saves a model that was trained for fifty steps.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import importlib.util
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from hotloop.errors import HotloopError, JobInvalid
from hotloop.levers.fp8 import has_eight_bits
from hotloop.measurement import GpuTimes, Losses, Measurement, Memory, Software, Spans
from hotloop.runtime import temporary, tracebacks
from hotloop.runtime.aside import Aside
from hotloop.runtime.deep.deepening import Deepening
from hotloop.runtime.exam.examination import Examination
from hotloop.runtime.imports import when_imported
from hotloop.runtime.look.looking import Looking
from hotloop.runtime.planned import PlannedRun, build
from hotloop.runtime.probes import compile_times, memory
from hotloop.runtime.probes.holdings import with_holdings
from hotloop.runtime.probes.progress import ProgressProbe
from hotloop.runtime.smaller import smaller_batches
from hotloop.runtime.soaking import Soaking
from hotloop.runtime.stopping import Stopping
from hotloop.runtime.watching import Watch
from hotloop.trial.result import ChildResult, Ended, Failure
from hotloop.trial.spec import ASK, ASKED, Deep, Exam, Look, RunSpec, Soak, StopRule, TrialSpec

T = TypeVar("T")

# What torch says in a RuntimeError when there is no memory left.
HOST_IS_FULL = "DefaultCPUAllocator: can't allocate memory"
DEVICE_IS_FULL = "CUDA out of memory"

FEW, FEW_PLANNED = 2, 4
"""Steps that are better than none when the time is nearly over. Under a plan the first ones may be
spent on what is done once, such as compiling, and tell nothing of the others."""

_children: list[Child] = []


def begin(path: str) -> None:
    """Called before the first line of the script."""
    told = json.loads(Path(path).read_text(encoding="utf-8"))
    plain: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in told.items()
    }
    if "keep_going" in plain:
        os.unlink(path)  # nobody else will
        when_imported("torch", PlannedRun(RunSpec(**plain)).attach)
        return
    kinds = {"stop": StopRule, "exam": Exam, "soak": Soak, "look": Look, "deep": Deep}
    for name, kind in kinds.items():
        plain[name] = kind(**plain[name]) if plain[name] is not None else None
    spec = TrialSpec(**plain)
    if way := os.environ.pop("HOTLOOP_SHIELD", None):
        from hotloop.runtime import shield

        is_covered = way == "overlay"
        shield.install(spec.scratch, spec.passthrough, spec.protect, is_covered=is_covered)
    temporary.keep_apart(spec.scratch)
    child = Child(spec)
    _children.append(child)
    child.start()


def is_trial() -> bool:
    """Whether this process is one, and tells its launcher how it ended."""
    return bool(_children)


def note(error: JobInvalid) -> None:
    """What is wrong with a job, told to the launcher as it will be told to the user."""
    for child in _children:
        child._note_failure(type(error), error)


class Child:
    def __init__(self, spec: TrialSpec) -> None:
        self._spec = spec
        self._pid = os.getpid()
        self._began = time.monotonic()
        self._torch: Any = None
        self._watch: Watch | None = None
        self._failure: Failure | None = None
        self._soaking: Soaking | None = None
        self._examination: Examination | None = None
        self._looking: Looking | None = None
        self._deepening: Deepening | None = None
        self._levers = build(spec.levers)
        self._written = False

    def start(self) -> None:
        self._stack = open(self._spec.stack, "w", encoding="utf-8")  # noqa: SIM115
        faulthandler.dump_traceback_later(self._spec.stack_after, file=self._stack)
        self._answer_when_asked()
        tracebacks.install(self._note_failure)
        atexit.register(self.leave, Ended.SCRIPT)
        self._guard_immediate_exit()
        when_imported("torch", self._attach)

    def _answer_when_asked(self) -> None:
        """By the thread that gets the signal, which is the main one, about itself alone."""
        if ASK is None:
            return
        self._asked = Path(self._spec.stack).with_name(ASKED).open("a", encoding="utf-8")
        faulthandler.register(ASK, file=self._asked, all_threads=False)

    def leave(self, ended: Ended) -> None:
        """Writes what was seen. Only the first call counts, and only in the job's own process."""
        if self._written or os.getpid() != self._pid:
            return
        self._written = True
        deep = self._deepening.report() if self._deepening else None  # first: it is still on
        receipts = [lever.receipt() for lever in self._levers] if self._torch else []
        result = ChildResult(ended, self._failure, self._measurement(), receipts, deep=deep)
        if self._soaking:
            result = replace(result, soak=self._soaking.finish())
        if self._examination:
            result = replace(result, evidence=self._examination.evidence())
        if self._looking:
            result = replace(result, inspection=self._looking.inspection())
        path = Path(self._spec.result)
        partial = path.with_suffix(".partial")
        with contextlib.suppress(OSError):  # a full disk: the parent sees what is missing
            partial.write_text(json.dumps(asdict(result)), encoding="utf-8")
            partial.replace(path)

    def _attach(self, torch: ModuleType) -> None:
        self._torch = torch
        spec, watch = self._spec, Watch(torch)
        watch.seams.model.at_once = spec.at_once
        smaller_batches(watch.seams, spec.divisor)
        for lever in self._levers:
            lever.apply(torch, watch.seams)
        if spec.exam is not None and spec.exam.aside:
            Aside(torch).attach()
        deadline = self._began + 0.9 * spec.limit_seconds if spec.in_part else math.inf
        optimizers = watch.inventory.numbers["optimizer"]
        if spec.soak is not None:
            self._soaking = Soaking(torch, watch, spec.soak, spec.stop)
            self._soaking.attach()
        if spec.exam is not None:
            self._examination = Examination(torch, watch, spec.exam, self._enough)
            self._examination.attach()
        if spec.look is not None:
            self._looking = Looking(torch, watch, spec.look)
            self._looking.attach()
        if spec.deep is not None:
            self._deepening = Deepening(torch, watch, spec.deep)
            self._deepening.attach()
        stop = self._deepening or self._looking or self._soaking or Stopping(spec.stop)
        few = FEW_PLANNED if self._levers else FEW
        progress = ProgressProbe(spec.progress, stop, deadline, optimizers, self._enough, few)
        progress.attach(watch.seams)
        watch.driver.attach()
        os.register_at_fork(after_in_child=watch.seams.silence)
        self._watch = watch

    def _enough(self) -> None:
        self.leave(Ended.ENOUGH)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(0)

    def _note_failure(self, kind: type[BaseException], error: BaseException) -> None:
        message = _message(error)
        of_device = getattr(self._torch, "OutOfMemoryError", ()) if self._torch else ()
        self._failure = Failure(
            kind=kind.__name__,
            message=message[:2000],
            is_syntax=issubclass(kind, SyntaxError),
            is_host_memory=isinstance(error, MemoryError) or HOST_IS_FULL in message,
            is_device_memory=isinstance(error, of_device) or DEVICE_IS_FULL in message,
            is_ours=tracebacks.is_ours(error),
            remedy=error.remedy if isinstance(error, JobInvalid) else "",
        )

    def _guard_immediate_exit(self) -> None:
        leave_at_once = os._exit

        def _exit(status: int) -> None:
            self.leave(Ended.SCRIPT)
            leave_at_once(status)

        os._exit = _exit  # type: ignore[assignment]

    def _compiles(self) -> bool:
        return any(lever.compiles for lever in self._levers)

    def _measurement(self) -> Measurement:
        software = Software(python=platform.python_version())
        if self._watch is None:
            return Measurement(software=software, memory=memory.peak(None))
        torch, watch = self._torch, self._watch
        software = replace(software, torch=torch.__version__, device=_device(torch))
        watch.driver.detach()
        events = watch.clock.events
        used = memory.peak(torch)  # before reading anything back, which takes memory of its own
        compiled = _if_readable(compile_times.spans, Spans())
        return Measurement(
            software=replace(
                software,
                bfloat16=_if_readable(lambda: _bfloat16(torch), None),
                float8=_if_readable(lambda: _float8(torch), None),
                torchao=importlib.util.find_spec("torchao") is not None,
            ),
            events=events,
            gpu=_if_readable(lambda: watch.gpu_clock.times(events), GpuTimes()),
            losses=_if_readable(lambda: watch.loss.losses(events), Losses()),
            memory=_if_readable(lambda: _with_holdings(torch, watch, used), used),
            inventory=watch.inventory.inventory(events),
            discovery_steps=watch.driver.roots.steps,
            compile_seconds=compile_times.seconds(),
            compiling=compiled if self._compiles() else Spans(),
            script_compiling=Spans() if self._compiles() else compiled,
            lost_events=watch.clock.lost,
        )


def _if_readable(read: Callable[[], T], otherwise: T) -> T:
    """After an error on the device nothing can be read from it any more."""
    try:
        return read()
    except Exception:
        return otherwise


def _with_holdings(torch: Any, watch: Watch, used: Memory) -> Memory:
    models, optimizers = (watch.inventory.numbers[name].living() for name in ("model", "optimizer"))
    return with_holdings(torch, used, models, optimizers)


def _message(error: BaseException) -> str:
    if isinstance(error, HotloopError):
        return error.sentence
    try:
        return str(error)
    except Exception:  # a script's own exception may fail even at that
        return ""


def _device(torch: Any) -> str:
    if not torch.cuda.is_initialized():
        return "cpu"
    return str(torch.cuda.get_device_name(torch.cuda.current_device()))


def _bfloat16(torch: Any) -> bool | None:
    if not torch.cuda.is_initialized():
        return None
    return bool(torch.cuda.is_bf16_supported(including_emulation=False))


def _float8(torch: Any) -> bool | None:
    if not torch.cuda.is_initialized():
        return None
    return has_eight_bits(torch)
