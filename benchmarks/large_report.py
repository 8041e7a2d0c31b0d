"""How long the report of a very large study takes, and how large its file is.

    python benchmarks/large_report.py [--trials 200] [--steps 10000]

The study is made up: trials of a job whose steps vary a little, each with its own events and
losses, half of them proofs. Time is that of the report itself, from a study in memory to the text
of the page; reading a study of this size from a disk is timed apart.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from hotloop import reporting, studies, study
from hotloop.plan import Plan
from hotloop.study import Study
from tests.report.large import large_study


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--steps", type=int, default=10_000)
    parser.add_argument("--read", action="store_true", help="write it and read it back, too")
    given = parser.parse_args()
    record = large_study(given.trials, given.steps, random.Random(0))
    began, busy = time.perf_counter(), time.process_time()
    text = reporting.html(reporting.page_of(record, Path()))
    print(f"{given.trials} trials of {given.steps} steps")
    took, computing = time.perf_counter() - began, time.process_time() - busy
    size = len(text.encode()) / 2**20
    print(f"report   {took:.2f} s, {computing:.2f} s of them computing; {size:.2f} MiB")
    if given.read:
        _read(record)


def _read(record: Study) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = study.save(record, Path(folder))
        began, busy = time.perf_counter(), time.process_time()
        found = studies.read(path)
        took, computing = time.perf_counter() - began, time.process_time() - busy
        size = path.stat().st_size / 2**20
        print(f"reading  {took:.2f} s, {computing:.2f} s of them computing; {size:.0f} MiB")
        assert found.trials[0].plan == Plan()


if __name__ == "__main__":
    main()
