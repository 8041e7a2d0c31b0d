"""A trial that is looked into, from the inside: what is watched during which steps.

First some steps to warm up; then the training thread is sampled, while its waits and the loader are
watched; then, on a GPU, a few steps under torch's profiler, or, on a CPU, a few with the loader's
workers held, a few with workers kept that each pass starts anew, and a few with fewer threads; on
either a few without anomaly detection, where that is on; and at last every operator of a step or
two is counted. Each kind of looking disturbs what the next would see, so they take turns.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotloop.inspection import Inspection, Kernels, Operators, StepMemory
from hotloop.runtime.look.alone import AloneProbe
from hotloop.runtime.look.calls import CallProbe
from hotloop.runtime.look.compiling import compilations, compiled_so_far, graph_breaks
from hotloop.runtime.look.course import MemoryCourse
from hotloop.runtime.look.fewer_threads import FewerThreadsProbe
from hotloop.runtime.look.handing import HandingProbe
from hotloop.runtime.look.keeping import KeepingProbe
from hotloop.runtime.look.kernels import KernelProbe
from hotloop.runtime.look.loading import LoaderProbe
from hotloop.runtime.look.losses import LossCalls
from hotloop.runtime.look.memory import MemoryProbe, swapped
from hotloop.runtime.look.no_anomaly import NoAnomalyProbe
from hotloop.runtime.look.operators import OperatorProbe
from hotloop.runtime.look.pausing import PauseProbe
from hotloop.runtime.look.sampler import Sampler
from hotloop.runtime.look.unused_gradients import UnusedGradientProbe
from hotloop.runtime.look.waits import WaitProbe
from hotloop.runtime.patches import Patches
from hotloop.runtime.watching import Watch
from hotloop.trial.spec import Look

MOST_RECOUNTS = 3
"""Of operators, because an evaluation lay in the steps."""


class Looking:
    """Stands in for the stop rule: asked after every step, it goes from one kind to the next."""

    give_up_above = None
    asked_from = 0

    def __init__(self, torch: Any, watch: Watch, look: Look) -> None:
        self.warm_up = look.warm_up
        self._torch = torch
        self._watch = watch
        self._look = look
        self._patches = Patches()
        self._sampler = Sampler()
        self._loading = LoaderProbe(torch, Path(look.folder))
        self._handing = HandingProbe()
        self._alone = AloneProbe()
        self._keeping = KeepingProbe()
        self._threads = FewerThreadsProbe(torch)
        self._anomaly = NoAnomalyProbe(torch)
        self._untried: list[FewerThreadsProbe | NoAnomalyProbe] = [self._threads, self._anomaly]
        self._calls = CallProbe(torch)
        self._unused = UnusedGradientProbe()
        self._waits = WaitProbe(torch) if torch.version.cuda or torch.version.hip else None
        self._kernel_probe = KernelProbe(torch)
        self._course = MemoryCourse(torch)
        self._step_memory: StepMemory | None = None
        self._optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self._operator_probe = OperatorProbe(torch, self._course)
        self._losses = LossCalls(torch)
        self._pauses = PauseProbe(torch)
        self._paused, self._recounts = False, 0
        self._kernels: Kernels | None = None
        self._operators: Operators | None = None
        self._memory = MemoryProbe(torch)
        self._compiled = 0
        self._problems: list[str] = []
        self._steps = 0
        self._turn: Callable[[int, float], bool] = self._warming
        self._since = 0, 0.0

    def attach(self) -> None:
        seams = self._watch.seams
        self._loading.attach(self._patches)
        self._loading.tell_apart(seams, self._watch.inventory.numbers["loader"].of)
        self._alone.attach(seams)  # which lets workers go before anybody counts
        self._handing.attach(seams)
        self._keeping.attach(seams)
        self._calls.attach(seams, self._patches)
        self._anomaly.attach(seams)
        self._unused.attach(seams)
        self._operator_probe.attach(seams)
        self._losses.attach(seams)
        self._pauses.attach(seams)
        seams.step.after.append(lambda args, result, began: self._optimizers.add(args[0]))
        if self._waits is not None:
            self._waits.attach(self._patches)

    def satisfied(self, steps: int, seconds: float) -> bool:
        if steps == self._steps and steps:
            return False  # another optimizer's step, inside the same step of the job
        self._steps = steps
        self._paused = self._pauses.stepped()
        if self._turn != self._warming:
            self._memory.note_step()
        return self._turn(steps, seconds)

    def inspection(self) -> Inspection:
        """At the end of the process, however that came about."""
        self._sampler.stop()
        self._alone.end()
        self._threads.end()
        self._anomaly.end()
        self._patches.restore()
        calls = self._calls
        return Inspection(
            steps=len(self._memory.host),
            samples=self._sampler.samples,
            loaders=self._loading.looks(),
            alone_seconds=self._alone.seconds,
            handed_seconds=self._handing.seconds,
            kept_seconds=self._keeping.seconds,
            threads_tried=self._threads.tried,
            anomaly_tried=self._anomaly.tried,
            unused_gradients=self._unused.found,
            synchronisations=self._waits.synchronisations if self._waits else [],
            operators=self._operators,
            losses=self._losses.seen(),
            kernels=self._kernels,
            allocator=self._memory.allocator,
            step_memory=self._step_memory,
            calls=calls.calls,
            evaluations_with_gradients=calls.passes,
            compilations=compilations(self._compiled),
            graph_breaks=graph_breaks(),
            scaler_skips=calls.skips,
            host_bytes=self._memory.host,
            device_bytes=self._memory.device,
            major_faults=self._memory.faults,
            swapped=swapped(),
            problems=self._problems,
        )

    # Its turns: each is asked after a step, and says whether all has been seen.

    def _warming(self, steps: int, seconds: float) -> bool:
        if steps >= self.warm_up:
            self._compiled = compiled_so_far()
            self._memory.begin()
            if self._uses_device() and self._waits is not None:
                with self._noting("waits for the device"):
                    self._waits.attach_to_driver(self._patches)
            self._keeping.forget()
            with self._noting("gradients that nobody uses"):
                self._unused.begin(self._models())
            self._sampler.start()
            self._next(self._sampling, steps, seconds)
        return False

    def _sampling(self, steps: int, seconds: float) -> bool:
        made, took = steps - self._since[0], seconds - self._since[1]
        look = self._look
        if (made >= look.steps and took >= look.seconds) or took >= look.most_seconds:
            self._sampler.stop()
            self._unused.end()
            self._memory.end()
            if self._uses_device():
                with self._noting("kernels on the device"):
                    self._kernel_probe.start()
                    self._next(self._starting, steps, seconds)
                    return False
            if self._loading.has_workers:
                self._alone.begin()
                self._next(self._holding, steps, seconds)
                return False
            self._try(steps, seconds)
        return False

    def _holding(self, steps: int, seconds: float) -> bool:
        made, took = steps - self._since[0], seconds - self._since[1]
        self._alone.stepped()
        if made > self._look.held_steps or took >= self._look.most_seconds / 3:
            self._alone.end()
            if self._keeping.is_worth_it:
                self._keeping.begin()
                self._loading.rests = True
                self._next(self._keeping_workers, steps, seconds)
                return False
            self._try(steps, seconds)
        return False

    def _keeping_workers(self, steps: int, seconds: float) -> bool:
        took = seconds - self._since[1]
        self._keeping.stepped()
        enough = len(self._keeping.seconds) >= self._look.kept_passes
        if enough or took >= self._look.most_seconds / 3:
            self._keeping.end()
            self._loading.rests = False
            self._try(steps, seconds)
        return False

    def _try(self, steps: int, seconds: float) -> None:
        """What is still to be tried; and when nothing is, the last turn."""
        while self._untried and not (self._look.tried_steps and self._untried[0].is_worth_it):
            del self._untried[0]
        if not self._untried:
            self._count_operators(steps, seconds)
            return
        self._untried[0].begin()
        self._next(self._trying, steps, seconds)

    def _trying(self, steps: int, seconds: float) -> bool:
        made, took = steps - self._since[0], seconds - self._since[1]
        self._untried[0].stepped()
        if made >= self._look.tried_steps or took >= self._look.most_seconds / 3:
            self._untried.pop(0).end()
            self._try(steps, seconds)
        return False

    def _starting(self, steps: int, seconds: float) -> bool:
        self._kernel_probe.begin()
        self._next(self._profiling, steps, seconds)
        return False

    def _profiling(self, steps: int, seconds: float) -> bool:
        made, took = steps - self._since[0], seconds - self._since[1]
        if made >= self._look.profiled_steps or took >= self._look.most_seconds:
            with self._noting("kernels on the device"):
                self._kernels = self._kernel_probe.stop(made)
            self._untried.remove(self._threads)  # which do not matter beside a GPU
            self._try(steps, seconds)
        return False

    def _count_operators(self, steps: int, seconds: float) -> None:
        if "torch._dynamo" in sys.modules:  # inside compiled code no operator is seen
            self._torch.compiler.set_stance("force_eager")
        with self._noting("memory over a step"):
            self._course.begin(self._models(), list(self._optimizers))
        self._operator_probe.begin()
        self._losses.begin()
        self._next(self._counting, steps, seconds)

    def _counting(self, steps: int, seconds: float) -> bool:
        made, took = steps - self._since[0], seconds - self._since[1]
        self._step_memory = self._course.end() or self._step_memory
        is_late = took >= self._look.most_seconds / 3
        if self._paused and self._recounts < MOST_RECOUNTS and not is_late:
            # An evaluation is no part of a step. What was counted stands if the script ends now.
            self._operators = self._operator_probe.end(made)
            self._recounts += 1
            self._course = MemoryCourse(self._torch)
            self._operator_probe = OperatorProbe(self._torch, self._course)
            self._operator_probe.attach(self._watch.seams)
            self._count_operators(steps, seconds)
            return False
        if made < self._look.counted_steps and not is_late:
            return False
        self._operators = self._operator_probe.end(made)
        return True

    def _next(self, turn: Callable[[int, float], bool], steps: int, seconds: float) -> None:
        self._turn = turn
        self._since = steps, seconds

    def _noting(self, what: str) -> contextlib.AbstractContextManager[None]:
        return _Noting(self._problems, what)

    def _models(self) -> list[Any]:
        roots = [known() for known in self._watch.driver.roots.roots]
        return [root for root in roots if root is not None]

    def _uses_device(self) -> bool:
        return bool(self._torch.cuda.is_initialized())


class _Noting:
    """What cannot be looked at is said, and takes away that part alone."""

    def __init__(self, problems: list[str], what: str) -> None:
        self._problems, self._what = problems, what

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> bool:
        if not isinstance(error, Exception):
            return False
        self._problems.append(f"{self._what}: {type(error).__name__}: {error}"[:300])
        return True
