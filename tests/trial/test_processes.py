"""Looking after the processes of a trial: their memory (`tree`), and their end (`reaping`)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from hotloop import processes
from hotloop.measurement import Memory
from hotloop.trial import launch, reaping, tree
from hotloop.trial.tree import ProcessTree

# A process that starts another and says its number. The other may leave the group; or stay, and be
# deaf to a polite end and without the mark.
PARENT = """\
import signal, subprocess, sys, time
sleep = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
options = {{
    "stays": {{}},
    "leaves": {{"start_new_session": True}},
    "is deaf": {{
        "env": {{}}, "preexec_fn": lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN)
    }},
}}
child = subprocess.Popen(sleep, **options["{how}"])
print(child.pid, flush=True)
time.sleep(600)
"""

needs_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc")


def start(mark: str, how: str) -> tuple[subprocess.Popen[bytes], int]:
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", PARENT.format(how=how)],
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, reaping.MARK: mark},
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


@dataclass
class Family:
    process: subprocess.Popen[bytes]
    child: int
    mark: str

    def end(self) -> None:
        reaping.end(self.process, self.mark)


@pytest.fixture
def family() -> Iterator[Callable[..., Family]]:
    families: list[Family] = []

    def make(how: str = "stays") -> Family:
        mark = uuid.uuid4().hex  # of its own: other sessions may be at the same tests
        families.append(Family(*start(mark, how), mark))
        return families[-1]

    yield make
    for one in families:
        if one.process.returncode is None:
            one.end()


def lives(pid: int) -> bool:
    """A zombie does not: it waits for whoever adopted it."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def gone(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while lives(pid) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not lives(pid)


@needs_proc
@pytest.mark.parametrize("how", ["stays", "leaves", "is deaf"])
def test_nobody_is_left_behind(how: str, family: Callable[..., Family]) -> None:
    one, stranger = family(how), family()
    assert lives(one.child)
    one.end()
    assert one.process.returncode is not None
    assert gone(one.child)
    assert stranger.process.poll() is None
    assert lives(stranger.child)


def test_a_process_that_has_ended_is_no_problem() -> None:
    process = subprocess.Popen([sys.executable, "-S", "-c", ""], start_new_session=True)
    process.wait()
    reaping.end(process, uuid.uuid4().hex)
    assert process.returncode == 0


@needs_proc
def test_the_tree_knows_the_memory_of_everyone(family: Callable[..., Family]) -> None:
    one = family("leaves")
    watched = ProcessTree(one.process.pid)
    assert watched.main_now is None
    watched.look()
    assert watched.main_now is not None and watched.main_now > 2**20
    if Path(f"/proc/{one.process.pid}/task/{one.process.pid}/children").exists():
        assert set(watched.worker_peaks) == {one.child}
        assert watched.worker_peaks[one.child] > 0
        assert watched.children_peak is not None


@needs_proc
def test_the_tree_remembers_who_has_gone(family: Callable[..., Family]) -> None:
    one = family()
    watched = ProcessTree(one.process.pid)
    watched.look()
    before = watched.main_now, dict(watched.worker_peaks), watched.children_peak
    one.end()
    watched.look()
    assert (watched.main_now, watched.worker_peaks, watched.children_peak) == before


class TestChildrenOnPaper:
    @pytest.fixture
    def living(self, monkeypatch: pytest.MonkeyPatch) -> dict[int, int]:
        """What each holds that lives now."""
        held: dict[int, int] = {}
        monkeypatch.setattr(processes, "descendants", lambda pid: dict.fromkeys(held, pid))
        monkeypatch.setattr(
            processes, "held_by", lambda children: sum(held[pid] for pid in children)
        )
        monkeypatch.setattr(tree, "REST", 0.0)
        return held

    def test_only_those_add_up_that_live_at_the_same_time(self, living: dict[int, int]) -> None:
        watched = ProcessTree(-1)
        for now in ({1: 10}, {1: 10, 2: 15}, {3: 20}):
            living.clear()
            living.update(now)
            watched.look()
        assert watched.children_peak == 25

    def test_what_a_process_had_before_it_became_the_job_is_not_the_jobs(
        self, living: dict[int, int]
    ) -> None:
        entered = [False]
        watched = ProcessTree(-1, lambda: entered[0])
        living[1] = 10  # in which an overlay was tried
        watched.look()
        assert watched.children_peak is None and watched.worker_peaks == {}
        living.clear()
        entered[0] = True
        watched.look()
        assert watched.children_peak == 0

    def test_what_takes_the_kernel_long_is_asked_less_often(
        self, living: dict[int, int], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        clock, asked = [0.0], []

        def slow(children: dict[int, int]) -> int:
            asked.append(clock[0])
            clock[0] += 0.05
            return 0

        monkeypatch.setattr(tree, "REST", 100.0)
        monkeypatch.setattr(processes, "held_by", slow)
        monkeypatch.setattr(time, "monotonic", lambda: clock[0])
        watched = ProcessTree(-1)
        for second in range(12):
            clock[0] = max(clock[0], float(second))
            watched.look()
        assert asked == [0.0, 6.0]

    def test_where_there_is_no_proc_nothing_is_known(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(processes, "descendants", lambda pid: None)
        watched = ProcessTree(-1)
        watched.look()
        assert watched.children_peak is None


@pytest.mark.parametrize(
    ("by_itself", "from_here", "known"), [(7, 5, 7), (5, 7, 7), (None, 5, 5), (None, None, None)]
)
def test_a_trial_and_its_launcher_have_both_looked(
    by_itself: int | None, from_here: int | None, known: int | None
) -> None:
    watched = ProcessTree(-1)
    watched.children_peak, watched.worker_peaks = from_here, {1: 3, 2: 4}
    found = launch.with_children(Memory(host_peak=9, children_peak=by_itself), watched)
    assert found == Memory(host_peak=9, children_peak=known, worker_peaks=[4, 3])
