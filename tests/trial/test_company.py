"""What else kept the cores busy while a trial ran: `company`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotloop.trial import company
from hotloop.trial.company import Company, CompanyMeter, used_by_all

TICK = os.sysconf("SC_CLK_TCK")


class Machine:
    """Its cores, as /proc/stat tells of them, and what we have used of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "proc").mkdir()
        self.cores = 2
        self.ours = 5.0
        self.passes(100.0, 100.0)

    def passes(self, user: float, idle: float, iowait: float = 0.0, steal: float = 0.0) -> None:
        """Each core has counted so many seconds in all."""
        ticks = [round(one * TICK) for one in (user, 0, 0, idle, iowait, 0, 0, steal, 7, 0)]
        counted = " ".join(str(one) for one in ticks)
        lines = ["cpu  1 2 3", *(f"cpu{core} {counted}" for core in range(self.cores)), "intr 7"]
        (self.root / "proc/stat").write_text("\n".join(lines), encoding="ascii")

    def meter(self) -> CompanyMeter:
        return CompanyMeter(lambda: self.ours, self.root)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(company, "_own_cores", lambda: {0, 1})
    return Machine(tmp_path)


def test_what_we_did_not_use_others_did(machine: Machine) -> None:
    meter = machine.meter()
    machine.passes(user=107, idle=102, iowait=1)  # of ten seconds on two cores
    machine.ours += 8.0
    meter.look()
    assert meter.company() == Company(others=0.3, stolen=0.0, idle=0.3)


def test_what_the_host_gave_to_other_virtual_machines(machine: Machine) -> None:
    meter = machine.meter()
    machine.passes(user=106, idle=100, steal=4)
    machine.ours += 12.0
    meter.look()
    assert meter.company() == Company(others=0.0, stolen=0.4, idle=0.0)


def test_more_of_ours_than_the_kernel_counted_is_nobody_elses(machine: Machine) -> None:
    """The one is counted in ticks, the other to the nanosecond."""
    meter = machine.meter()
    machine.passes(user=110, idle=100)
    machine.ours += 20.3
    meter.look()
    assert meter.company() == Company(others=0.0, stolen=0.0, idle=0.0)


def test_cores_that_are_not_ours_do_not_count(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(company, "_own_cores", lambda: {0})
    meter = machine.meter()
    machine.passes(user=105, idle=105)
    machine.ours += 5.0
    meter.look()
    assert meter.company() == Company(others=0.0, stolen=0.0, idle=0.5)


def test_a_trial_too_short_to_tell(machine: Machine) -> None:
    meter = machine.meter()
    machine.passes(user=101, idle=100.5)
    meter.look()
    assert meter.company() is None


def test_looks_that_fail_change_nothing(machine: Machine) -> None:
    meter = machine.meter()
    machine.passes(user=110, idle=100)
    machine.ours += 20.0
    meter.look()
    (machine.root / "proc/stat").unlink()
    meter.look()
    assert meter.company() == Company(others=0.0, stolen=0.0, idle=0.0)


@pytest.mark.parametrize("told", ["", "cpu 1 2 3\ncpu0 1 2 3\n", "cpu0 0 0 0 0 0 0 0 0\n"])
def test_a_kernel_that_does_not_tell(told: str, tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/stat").write_text(told, encoding="ascii")
    meter = CompanyMeter(lambda: 1.0, tmp_path)
    meter.look()
    assert meter.company() is None
    assert CompanyMeter(lambda: 1.0, tmp_path / "nowhere").company() is None


BUSY = """
import time
while time.process_time() < 0.5: pass
print(flush=True)
input()
"""


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-S", "-c", BUSY]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, start_new_session=True) as process:
        yield process
        process.kill()


@pytest.mark.skipif(used_by_all(os.getpid()) is None, reason="there is no /proc")
def test_what_our_processes_use_is_ours_while_they_live_and_afterwards(
    busy: subprocess.Popen[bytes],
) -> None:
    before = used_by_all(os.getpid())
    assert before is not None and busy.stdout is not None and busy.stdin is not None
    busy.stdout.readline()
    alive = used_by_all(os.getpid())
    assert alive is not None and alive - before >= 0.4
    busy.communicate(b"\n")
    ended = used_by_all(os.getpid())
    assert ended is not None and ended >= alive - 2 / TICK


def test_of_a_process_that_is_gone_nothing_is_known() -> None:
    assert used_by_all(2**30) is None
