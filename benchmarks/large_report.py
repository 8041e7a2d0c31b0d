"""How long the report of a very large study takes, how large its file is, and what memory it takes.

    python benchmarks/large_report.py [--trials 200] [--steps 10000] [--runs 5] [--out FILE]

The study is made up: trials of a job whose steps vary a little, each with its own events and
losses, half of them proofs. Timed is the whole command, `hotloop report STUDY --html FILE`, each
time in a fresh process, from the file on the disk to the page on the disk. The figure is the time
that it computes (user and system): unlike the time that passes, it hardly depends on what else
the machine does. Its parts are timed apart, in this process.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

sys.path.insert(0, str(Path(__file__).parents[1]))

from hotloop import reporting, studies, study
from tests.report.large import large_study

T = TypeVar("T")


@dataclass(frozen=True)
class Took:
    """One whole command."""

    computing: float
    """Seconds, user and system."""
    passed: float
    peak: int
    """Bytes in memory at the most."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path, page = Path(folder, "study.json"), Path(folder, "page.html")
        make(given.trials, given.steps, Path(folder))
        runs = [whole_command(path, page) for _ in range(given.runs)]
        found = {
            "python": platform.python_version(),
            "cores": os.cpu_count(),
            "trials": given.trials,
            "steps": given.steps,
            "study_bytes": path.stat().st_size,
            "page_bytes": page.stat().st_size,
            "computing_seconds": statistics.median(run.computing for run in runs),
            "passed_seconds": statistics.median(run.passed for run in runs),
            "peak_bytes": max(run.peak for run in runs),
            "parts_computing_seconds": parts(path),
            "runs": [asdict(run) for run in runs],
        }
    text = json.dumps(found, indent=1)
    print(text)
    if given.out:
        given.out.write_text(text + "\n")


def make(trials: int, steps: int, folder: Path) -> None:
    """In a process of its own: the kernel counts the memory of who starts a command to its peak."""
    process = multiprocessing.get_context("spawn").Process(
        target=_make, args=(trials, steps, folder)
    )
    process.start()
    process.join()


def _make(trials: int, steps: int, folder: Path) -> None:
    study.save(large_study(trials, steps, random.Random(0)), folder)


def whole_command(path: Path, page: Path) -> Took:
    began = time.perf_counter()
    command = [sys.executable, "-m", "hotloop", "report", str(path), "--html", str(page)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    passed = time.perf_counter() - began
    assert status == 0, "the report was not made"
    in_bytes = 1 if sys.platform == "darwin" else 1024
    return Took(used.ru_utime + used.ru_stime, passed, used.ru_maxrss * in_bytes)


def parts(path: Path) -> dict[str, float]:
    """Once each. What is skimmed is read while the page is made."""
    skimming, record = timed(lambda: studies.skim(path))
    paging, made = timed(lambda: reporting.page_of(record, path.parent))
    rendering, _ = timed(lambda: reporting.html(made))
    reading, _ = timed(lambda: studies.read(path))
    return {"skim": skimming, "page": paging, "html": rendering, "read_as_a_whole": reading}


def timed(work: Callable[[], T]) -> tuple[float, T]:
    busy = time.process_time()
    found = work()
    return time.process_time() - busy, found


if __name__ == "__main__":
    main()
