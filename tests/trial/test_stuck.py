from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotloop import processes
from hotloop.trial.spec import ASK, ASKED
from hotloop.trial.stuck import Stuck

pytestmark = pytest.mark.skipif(ASK is None, reason="nothing is asked here")

SPAWN = '  File "/torch/multiprocessing/spawn.py", line 1 in join'
LAUNCH = '  File "/torch/distributed/run.py", line 1 in run'
JOIN = '  File "/multiprocessing/process.py", line 1 in join'
POOL = '  File "/multiprocessing/pool.py", line 1 in wait'
INPUT = '  File "/train.py", line 1 in main\n    name = input()'


class Acted(Stuck):
    """Of which the cores and the stack are given."""

    def __init__(self, stack: str, own: float = 0.0, childrens: float = 1.0, group: bool = False):
        super().__init__(os.getpid(), Path("none"), nobody_types=True)
        self.told, self.own, self.childrens, self.group = stack, own, childrens, group
        self.asks: list[float] = []
        self.now = 0.0

    def after(self, seconds: int, steps_until: int = 0) -> float | None:
        for now in range(1, seconds + 1):
            self.now = float(now)
            found = self.quiet_for(self.now, min(now, steps_until))
            if found is not None:
                return found
        return None

    def _cores(self, seconds: float) -> tuple[float | None, float]:
        return self.own, self.childrens

    def _ask(self) -> str:
        self.asks.append(self.now)
        return self.told

    def _has_group(self) -> bool:
        return self.group


def test_nobody_types() -> None:
    waits = Acted(INPUT)
    assert waits.after(600) == 20
    assert waits.stack == INPUT
    assert Acted(INPUT).after(600, steps_until=30) == 20  # and trained for 30 before
    piped = Acted(INPUT)
    piped._nobody_types = False
    assert piped.after(600) is None


@pytest.mark.parametrize(
    ("stack", "group", "ends"),
    [
        (SPAWN, False, True),
        (LAUNCH, True, True),
        (LAUNCH, False, False),
        (JOIN, True, True),
        (JOIN, False, False),
        (POOL, True, False),
        ("", True, False),
    ],
)
def test_training_in_children(stack: str, group: bool, ends: bool) -> None:
    assert Acted(stack, group=group).after(600) == (30 if ends else None)


def test_what_may_still_train_is_left_alone() -> None:
    assert Acted(SPAWN, own=0.5).after(600) is None
    assert Acted(SPAWN, childrens=0.0).after(600) is None
    assert Acted(SPAWN).after(600, steps_until=3) is None  # it evaluates, perhaps


def test_a_script_that_trains_or_computes_is_never_asked() -> None:
    training, computing, waiting = Acted(""), Acted("", own=1.0), Acted("")
    assert training.after(600, steps_until=600) is None and training.asks == []
    assert computing.after(600) is None and computing.asks == []
    assert waiting.after(600) is None and 1 < len(waiting.asks) < 12


ANSWERS = f"""
import faulthandler, signal, sys, time
faulthandler.register({ASK}, file=open(sys.argv[1], "a"), all_threads=False)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    (tmp_path / "train.py").write_text(ANSWERS)
    words = [sys.executable, str(tmp_path / "train.py"), str(tmp_path / ASKED)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def test_who_is_asked_says_where_it_is_each_time(
    process: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    one = Stuck(process.pid, tmp_path / ASKED, nobody_types=True)
    time.sleep(0.5)  # until it sleeps
    first, second = one._ask(), one._ask()
    assert first == second
    assert first.endswith("    time.sleep(60)")
    assert process.poll() is None


def test_who_would_die_of_it_is_not_asked(tmp_path: Path) -> None:
    (tmp_path / ASKED).touch()
    with subprocess.Popen(["sleep", "60"]) as process:
        assert Stuck(process.pid, tmp_path / ASKED, True)._ask() == ""
        time.sleep(0.1)
        assert process.poll() is None
        process.kill()


@pytest.mark.parametrize(
    ("own", "childs", "found"),
    [
        ("", "RANK=1 WORLD_SIZE=2", True),
        ("", "RANK=1", False),
        ("", "", False),
        ("RANK=0 WORLD_SIZE=4", "", False),  # inherited
    ],
)
def test_a_group_is_known_by_what_its_processes_are_told(
    own: str, childs: str, found: bool
) -> None:
    words = ["env", "-u", "RANK", "-u", "WORLD_SIZE", *own.split(), "sh", "-c"]
    with subprocess.Popen(
        [*words, f"env {childs} sh -c 'echo ready; exec sleep 60' & wait"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None and process.stdout.readline()
        assert Stuck(process.pid, Path("none"), True)._has_group() == found
        os.killpg(process.pid, 9)


def test_cores_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    used = iter([(1.0), (2.0), (4.0), (6.0)])
    monkeypatch.setattr(processes, "cpu_seconds", lambda pid: next(used))
    monkeypatch.setattr(processes, "descendants", lambda pid: {})
    one = Stuck(1, Path("none"), True)
    assert [one._cores(at)[0] for at in (15.0, 17.0, 20.0, 22.0)] == [None, None, 0.6, 0.8]
