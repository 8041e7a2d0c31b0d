"""Starting a trial in a fresh process, watching over it, and reading what it left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path

from hotloop import codec
from hotloop.errors import StudyNotWritable
from hotloop.machine import GpuWatch
from hotloop.measurement import Memory
from hotloop.trial import bytecode, outcome, protection, reaping, stacks
from hotloop.trial.company import CompanyMeter
from hotloop.trial.environment import child_environment
from hotloop.trial.given import Given
from hotloop.trial.order import Glimpse, Order, Watcher
from hotloop.trial.power import PowerMeter
from hotloop.trial.result import ChildResult, Ended
from hotloop.trial.scratch import SECRETS, Scratch, remove_forgotten
from hotloop.trial.spec import ASKED, TrialSpec
from hotloop.trial.stuck import Stuck
from hotloop.trial.terminal import Terminal
from hotloop.trial.tree import ProcessTree
from hotloop.trial.trial import State, Trial

LOG = "output.log"
GRACE_SECONDS = 10.0
"""A script that has left its result but does not end is ended."""


class ProcessLauncher:
    """The real one."""

    def __init__(self) -> None:
        self._gpu: GpuWatch | None = None
        remove_forgotten()

    def launch(self, order: Order, watcher: Watcher) -> Trial:
        try:
            order.folder.mkdir(parents=True, exist_ok=True)
            (order.folder / LOG).touch()
            scratch = Scratch(protection.to_protect(order.job))
        except OSError as error:
            raise StudyNotWritable(
                f"A run cannot be kept in {order.folder}: {error.strerror}.",
                "Free some space, or name another folder with --study.",
            ) from None
        try:
            self._gpu = self._gpu or GpuWatch()
            return _Run(order, scratch, watcher, PowerMeter(self._gpu)).trial()
        finally:
            scratch.remove()


class _Run:
    def __init__(self, order: Order, scratch: Scratch, watcher: Watcher, power: PowerMeter) -> None:
        self._order = order
        self._scratch = scratch.path
        self._watcher = watcher
        self._power = power
        self._is_timed = not any((order.exam, order.soak, order.look, order.deep))
        self._mark = scratch.mark
        folder = order.folder
        self._files = {name: folder / name for name in ("spec.json", "result.json")}
        # Not in the study: it holds the user's whole environment, and what is secret in there.
        self._files["enter.json"] = scratch.path / SECRETS
        self._log = folder / LOG
        self._caches = folder.parent / order.caches
        self._progress = folder / "progress"
        self._stack = folder / "stack.txt"
        self._report = folder / "shield.json"
        self._given_up_after: float | None = None

    def trial(self) -> Trial:
        self._write_orders()
        began = time.monotonic()
        killed_before = _kernel_memory_kills()
        timed_out = interrupted = False
        with Terminal(self._log) as terminal, Given(terminal.childs) as given:
            process = self._start(terminal, given)
            tree = ProcessTree(process.pid, self._is_entered)
            self._company = CompanyMeter()
            asked = self._stack.with_name(ASKED)
            self._stuck = Stuck(process.pid, asked, nobody_types=given.is_terminal)
            try:
                timed_out = not self._watch(process, terminal, given, tree, began)
            except KeyboardInterrupt:
                interrupted = True
            finally:
                ended_by_itself = process.poll()
                if self._is_timed:
                    self._power.look(time.monotonic(), last=True)
                reaping.end(process, self._mark)
        timed_out = timed_out or self._died_of_telling(ended_by_itself)
        result, unreadable = self._read_result()
        left = outcome.Leftovers(
            returncode=ended_by_itself,
            result=result,
            result_unreadable=unreadable,
            timed_out_after=self._order.limit_seconds if timed_out else None,
            given_up_after=self._given_up_after,
            interrupted=interrupted,
            kernel_killed_for_memory=_kernel_memory_kills() > killed_before,
            ours=(str(self._scratch), str(self._order.folder), str(self._caches)),
            examined=self._order.exam is not None,
        )
        return self._conclude(left, tree, time.monotonic() - began)

    def _is_entered(self) -> bool:
        """The report is opened at once, and written just before the process becomes the job."""
        return self._report.exists() and self._report.stat().st_size > 0

    def _died_of_telling(self, returncode: int | None) -> bool:
        """Python does not stop a thread while it reads its stack, and rarely fails at that: when
        the time was over anyhow."""
        told = self._stack.exists() and self._stack.stat().st_size > 0
        return returncode == -signal.SIGSEGV and told

    def _start(self, terminal: Terminal, given: Given) -> subprocess.Popen[bytes]:
        enter = Path(__file__).with_name("enter.py")
        process = subprocess.Popen(
            # Isolated: this interpreter may differ from the script's, and must not read its path.
            [sys.executable, "-I", "-S", str(enter), str(self._files["enter.json"])],
            stdin=given.childs,
            stdout=terminal.childs,
            stderr=terminal.childs,
            start_new_session=True,
        )
        terminal.hand_over()
        given.hand_over()
        return process

    def _watch(
        self,
        process: subprocess.Popen[bytes],
        terminal: Terminal,
        given: Given,
        tree: ProcessTree,
        began: float,
    ) -> bool:
        """Until the process ends. False when it had to be given up."""
        looked = left_result = 0.0
        while process.poll() is None:
            printed = terminal.read(0.1)
            now = time.monotonic()
            if not terminal.is_open:
                time.sleep(0.05)
            if now - looked >= 1.0:
                looked = now
                tree.look()
                self._company.look()
                given.look()
                self._given_up_after = self._stuck.quiet_for(now - began, self._steps())
                if self._given_up_after is not None:
                    return True
            if self._is_timed:
                self._power.look(now)
            self._watcher(Glimpse(now - began, self._steps(), tree.main_now, printed))
            if now - began > self._order.limit_seconds:
                return False
            if self._files["result.json"].exists():
                left_result = left_result or now
                if now - left_result > GRACE_SECONDS:
                    return True
        return True

    def _steps(self) -> int:
        try:
            return int(self._progress.read_bytes() or b"0")
        except (OSError, ValueError):
            return 0

    def _write_orders(self) -> None:
        order, job = self._order, self._order.job
        protect = protection.to_protect(job)
        passthrough = [str(order.folder.parent), *protection.kept_caches()]
        spec = TrialSpec(
            result=str(self._files["result.json"]),
            progress=str(self._progress),
            stack=str(self._stack),
            stop=order.stop,
            # Counted from when Python has started, which a busy machine may take a second for.
            stack_after=max(order.limit_seconds - 2.0, order.limit_seconds / 2),
            limit_seconds=order.limit_seconds,
            scratch=str(self._scratch),
            levers=tuple(asdict(lever) for lever in order.plan.levers),
            passthrough=tuple(passthrough),
            protect=tuple(protect),
            exam=order.exam,
            soak=order.soak,
            look=replace(order.look, folder=str(order.folder)) if order.look else None,
            deep=order.deep,
            at_once=order.plan.at_once,
            divisor=order.divisor,
            in_part=order.in_part,
        )
        codec.write(self._files["spec.json"], spec)
        asks = (bytecode.is_missing(job.python), order.beside_others)
        own = child_environment(self._files["spec.json"], self._mark, self._caches, *asks)
        enter = {
            "argv": job.argv(),
            "cwd": job.cwd,
            "env": {**own, **order.plan.environment()},
            "protect": protect,
            "passthrough": passthrough,
            "scratch": str(self._scratch),
            "report": str(self._report),
            "overlay": os.environ.get("HOTLOOP_OVERLAY", "1") != "0",
            "parent": os.getpid(),
        }
        codec.write(self._files["enter.json"], enter)

    def _read_result(self) -> tuple[ChildResult | None, str]:
        try:
            text = self._files["result.json"].read_bytes()
        except OSError:
            partial = self._files["result.json"].with_suffix(".partial")
            return None, "it was cut off while being written." if partial.exists() else ""
        try:
            return codec.decode(text, ChildResult), ""
        except ValueError as error:
            return None, f"{error}."

    def _conclude(self, left: outcome.Leftovers, tree: ProcessTree, seconds: float) -> Trial:
        state, reason = outcome.state_of(left)
        result = left.result
        measurement = result.measurement if result else None
        if measurement is not None:
            measurement = replace(measurement, memory=with_children(measurement.memory, tree))
        code = left.returncode
        return Trial(
            number=self._order.number,
            plan=self._order.plan,
            state=state,
            reason=reason,
            seconds=seconds,
            exit_status=None if code is None else code if code >= 0 else 128 - code,
            signal=outcome.signal_name(code) if code is not None and code < 0 else None,
            failure=result.failure if result else None,
            measurement=measurement,
            receipts=tuple(result.receipts) if result else (),
            hung_at=self._hung_at(state),
            shielding=protection.shielding(self._report, self._scratch),
            log=str(self._log.relative_to(self._order.folder.parent)),
            purpose=self._order.purpose,
            evidence=result.evidence if result else None,
            soak=result.soak if result else None,
            power=self._power.log(),
            company=self._company.company() if self._is_timed else None,
            inspection=result.inspection if result else None,
            deep=result.deep if result else None,
            ran_out=result is not None and result.ended is Ended.SCRIPT,
        )

    def _hung_at(self, state: State) -> str:
        timed_out = state is State.TIMED_OUT
        return stacks.of_the_script(self._stack) if timed_out else self._stuck.stack


def with_children(memory: Memory, tree: ProcessTree) -> Memory:
    """As they were seen from here; at its end the trial has looked, too."""
    looks = [seen for seen in (memory.children_peak, tree.children_peak) if seen is not None]
    return replace(
        memory,
        worker_peaks=sorted(tree.worker_peaks.values(), reverse=True),
        children_peak=max(looks, default=None),
    )


def _kernel_memory_kills() -> int:
    """How many processes the kernel has killed for want of memory, since it started."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/vmstat").read_text(encoding="ascii").splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
    return 0
