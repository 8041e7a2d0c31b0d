from __future__ import annotations

import atexit
import faulthandler
import json
import math
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from hotloop import codec
from hotloop.measurement import Spans
from hotloop.runtime import child, imports
from hotloop.runtime.aside import Aside
from hotloop.runtime.child import Child
from hotloop.runtime.exam import randomness
from hotloop.trial.result import ChildResult, Ended
from hotloop.trial.spec import Exam, StopRule, TrialSpec


@pytest.fixture
def spec(tmp_path: Path) -> TrialSpec:
    return TrialSpec(
        result=str(tmp_path / "result.json"),
        progress=str(tmp_path / "progress"),
        stack=str(tmp_path / "stack.txt"),
        stop=StopRule(warm_up=0, steps=6),
        stack_after=3000.0,
        limit_seconds=3600.0,
        scratch=str(tmp_path),
    )


def result(spec: TrialSpec) -> ChildResult:
    return codec.decode(Path(spec.result).read_bytes(), ChildResult)


class TestLeaving:
    def test_without_torch_there_is_little_to_say(self, spec: TrialSpec) -> None:
        Child(spec).leave(Ended.SCRIPT)
        left = result(spec)
        assert left.ended is Ended.SCRIPT
        assert left.failure is None
        assert left.measurement.software.python == sys.version.split()[0]
        assert left.measurement.software.torch == ""
        assert left.measurement.memory.host_peak

    def test_only_the_first_time_counts(self, spec: TrialSpec) -> None:
        one = Child(spec)
        one.leave(Ended.ENOUGH)
        one.leave(Ended.SCRIPT)
        assert result(spec).ended is Ended.ENOUGH

    def test_another_process_leaves_nothing(
        self, spec: TrialSpec, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        one = Child(spec)
        monkeypatch.setattr(os, "getpid", lambda: 1)
        one.leave(Ended.SCRIPT)
        assert not Path(spec.result).exists()

    def test_nothing_half_written_is_left(self, spec: TrialSpec, tmp_path: Path) -> None:
        Child(spec).leave(Ended.SCRIPT)
        assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


class TestFailures:
    @pytest.mark.parametrize(
        ("error", "flags"),
        [
            (ValueError("no"), set()),
            (SyntaxError("no"), {"is_syntax"}),
            (IndentationError("no"), {"is_syntax"}),
            (MemoryError(), {"is_host_memory"}),
            (
                RuntimeError(
                    "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"
                ),
                {"is_host_memory"},
            ),
            (RuntimeError("CUDA out of memory. Tried to allocate"), {"is_device_memory"}),
        ],
    )
    def test_are_told_apart(self, error: Exception, flags: set[str], spec: TrialSpec) -> None:
        one = Child(spec)
        one._note_failure(type(error), error)
        one.leave(Ended.SCRIPT)
        failure = result(spec).failure
        assert failure is not None
        assert failure.kind == type(error).__name__
        assert {name for name, value in vars(failure).items() if value is True} == flags

    def test_torchs_own_error_counts(self, spec: TrialSpec, torch: Any) -> None:
        one = Child(spec)
        one._torch = torch
        error = torch.OutOfMemoryError("HIP has no more")
        one._note_failure(type(error), error)
        one.leave(Ended.SCRIPT)
        failure = result(spec).failure
        assert failure is not None
        assert failure.is_device_memory

    def test_a_message_may_hold_anything(self, spec: TrialSpec) -> None:
        one = Child(spec)
        error = FileNotFoundError("no " + os.fsdecode(b"caf\xe9") + "x" * 5000)
        one._note_failure(type(error), error)
        one.leave(Ended.SCRIPT)
        failure = result(spec).failure
        assert failure is not None
        assert len(failure.message) == 2000

    def test_an_error_that_cannot_speak_is_noted_too(self, spec: TrialSpec) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise RuntimeError("mute")

        one = Child(spec)
        one._note_failure(Mute, Mute())
        one.leave(Ended.SCRIPT)
        failure = result(spec).failure
        assert failure is not None
        assert failure.kind == "Mute"


class Left(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, list[Any]]]:
    """What a child does to its process, noted instead of done, or undone."""
    noted: dict[str, list[Any]] = {"atexit": [], "fork": [], "exit": []}

    def leave(status: int) -> None:
        noted["exit"].append(status)
        raise Left

    monkeypatch.setattr(atexit, "register", lambda *what: noted["atexit"].append(what))
    monkeypatch.setattr(
        os, "register_at_fork", lambda after_in_child: noted["fork"].append(after_in_child)
    )
    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(child, "_children", [])
    yield noted
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture
def started(
    spec: TrialSpec, process: dict[str, list[Any]], torch: Any, unharmed: None
) -> Iterator[Child]:
    one = Child(spec)
    one.start()
    yield one
    assert one._watch is not None
    one._watch.driver.detach()


class TestAtWork:
    def test_leaves_when_it_has_seen_enough(
        self, started: Child, spec: TrialSpec, process: dict[str, list[Any]], jobs: Any
    ) -> None:
        with pytest.raises(Left):
            jobs.train(jobs.Net(), steps=1000)
        assert process["exit"] == [0]
        left = result(spec)
        assert left.ended is Ended.ENOUGH
        assert left.measurement.inventory.optimizers[0].steps == 7
        assert [model.name for model in left.measurement.inventory.models] == ["Net"]
        assert len(left.measurement.losses.value) == 7
        assert left.measurement.discovery_steps == 5
        assert int(Path(spec.progress).read_bytes()) == 7

    def test_or_when_the_script_ends(
        self, started: Child, spec: TrialSpec, process: dict[str, list[Any]], jobs: Any, torch: Any
    ) -> None:
        jobs.train(jobs.Net(), steps=3)
        function, *args = process["atexit"][0]
        function(*args)
        left = result(spec)
        assert left.ended is Ended.SCRIPT
        assert left.measurement.software.torch == torch.__version__
        assert left.measurement.inventory.optimizers[0].steps == 3

    def test_or_when_it_leaves_at_once(
        self, started: Child, spec: TrialSpec, process: dict[str, list[Any]], jobs: Any
    ) -> None:
        jobs.train(jobs.Net(), steps=2)
        with pytest.raises(Left):
            os._exit(7)
        assert process["exit"] == [7]
        assert result(spec).ended is Ended.SCRIPT

    @pytest.mark.parametrize("by_plan", [False, True])
    def test_tells_what_a_plan_compiles_from_what_the_script_does(
        self, started: Child, spec: TrialSpec, monkeypatch: pytest.MonkeyPatch, by_plan: bool
    ) -> None:
        spans = Spans([1], [2])
        monkeypatch.setattr("hotloop.runtime.probes.compile_times.spans", lambda: spans)
        monkeypatch.setattr(started, "_compiles", lambda: by_plan)
        started.leave(Ended.SCRIPT)
        left = result(spec).measurement
        told = (left.compiling, left.script_compiling)
        assert told == ((spans, Spans()) if by_plan else (Spans(), spans))

    def test_takes_everything_off_again(
        self, started: Child, spec: TrialSpec, torch: Any, jobs: Any
    ) -> None:
        jobs.train(jobs.Net(), steps=2)
        patched = torch.autograd.backward
        started.leave(Ended.SCRIPT)
        assert torch.autograd.backward is not patched

    def test_a_fork_is_told_to_be_silent(
        self, started: Child, process: dict[str, list[Any]], jobs: Any
    ) -> None:
        assert started._watch is not None
        for silence in process["fork"]:
            silence()
        jobs.train(jobs.Net(), steps=20)
        assert len(started._watch.clock.events) == 0

    def test_notes_what_ended_the_script(
        self, started: Child, spec: TrialSpec, capsys: pytest.CaptureFixture[str]
    ) -> None:
        try:
            raise LookupError("lost")
        except LookupError as error:
            sys.excepthook(type(error), error, error.__traceback__)
        started.leave(Ended.SCRIPT)
        failure = result(spec).failure
        assert failure is not None
        assert (failure.kind, failure.message, failure.is_ours) == ("LookupError", "lost", False)
        assert "LookupError: lost" in capsys.readouterr().err


def test_what_it_is_told_is_read_from_a_file(
    spec: TrialSpec,
    tmp_path: Path,
    process: dict[str, list[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    waiting: Callable[..., None] = lambda name, action: told.append(name)  # noqa: E731
    monkeypatch.setattr(child, "when_imported", waiting)
    monkeypatch.delenv("HOTLOOP_SHIELD", raising=False)
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(asdict(spec)))
    child.begin(str(path))
    assert child._children[0]._spec == spec
    assert told == ["torch"]
    assert imports.when_imported is not waiting


def attach(torch: Any, spec: TrialSpec) -> None:
    """And nothing is left of it."""
    one = Child(spec)
    one._attach(torch)
    assert one._watch is not None
    one._watch.driver.detach()


@pytest.mark.parametrize("lays", [True, False])
def test_what_autograd_keeps_is_laid_aside_where_it_is_asked_for(
    lays: bool,
    spec: TrialSpec,
    torch: Any,
    unharmed: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    attached: list[Any] = []
    monkeypatch.setattr(Aside, "attach", lambda self: attached.append(self))
    monkeypatch.setattr(randomness, "pin", lambda *args: None)  # that would outlast this test
    exam = Exam(str(tmp_path), True, steps=6, forced=(), aside=lays)
    attach(torch, replace(spec, exam=exam))
    assert bool(attached) is lays


@pytest.mark.parametrize("in_part", [True, False])
def test_what_is_wanted_whole_does_not_end_with_the_steps_it_has(
    in_part: bool,
    spec: TrialSpec,
    torch: Any,
    unharmed: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deadlines: list[float] = []

    class Probe:
        def __init__(self, path: str, stop: Any, deadline: float, *rest: Any) -> None:
            deadlines.append(deadline)

        def attach(self, seams: Any) -> None:
            pass

    monkeypatch.setattr(child, "ProgressProbe", Probe)
    attach(torch, replace(spec, in_part=in_part))
    assert (deadlines == [math.inf]) is not in_part
