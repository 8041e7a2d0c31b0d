"""The planted jobs are what the suite says: they exist, run both ways, and mark their line."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
RULES = Path(__file__).parents[1] / "src" / "hotloop" / "diagnose" / "rules"

# Importing torch takes longer than two steps do, so all scripts run in forks of one process. An
# optimizer imports torch._dynamo. Threads of OpenMP wait for each other where cores are busy.
RUNS_ALL = """
import os, runpy, sys, traceback
os.environ["OMP_NUM_THREADS"] = "1"
import torch, torch._dynamo

def run(words):
    sys.argv, sys.path[0] = words, os.path.dirname(words[0])
    sys.stdout = open(os.devnull, "w")
    try:
        runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        print(end, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0

for line in sys.stdin.read().splitlines():
    child = os.fork()
    if child == 0:
        status = run(line.split("|"))
        sys.stderr.flush()
        os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def _load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


SUITE: Any = _load("planted/suite")
JOBS = SUITE.SUITE
each_job = pytest.mark.parametrize("planted", JOBS, ids=lambda planted: planted.name)


def test_enough_is_planted_and_two_controls_are_not() -> None:
    assert len([job for job in JOBS if job.rule and job.where == "cpu"]) >= 20
    assert [job.name for job in JOBS if not job.rule] == ["control_cpu", "control_gpu"]


def test_every_script_is_in_the_suite() -> None:
    scripts = {path.stem for path in SUITE.FOLDER.glob("*.py")} - {"__init__", "suite"}
    assert scripts == {job.name for job in JOBS}


def test_expected_rules_exist() -> None:
    assert {job.rule for job in JOBS if job.rule} <= {path.stem for path in RULES.glob("*.py")}


@each_job
def test_a_job_says_what_is_planted_and_marks_one_line(planted: Any) -> None:
    text = planted.source.read_text(encoding="utf-8")
    marked = [line for line in text.splitlines() if line.endswith(SUITE.MARKER)]
    assert len(marked) == (1 if planted.rule else 0)
    said = ast.get_docstring(ast.parse(planted.script.read_text(encoding="utf-8")))
    assert said and re.search(r"Planted: |Nothing is planted", said) and "--fixed" in said


@each_job
def test_a_job_gives_no_hint(planted: Any) -> None:
    """A tool that knows these scripts by what they call things proves nothing."""
    text = planted.script.read_text(encoding="utf-8").lower()
    assert "hotloop" not in text and "slow_" not in text and "bottleneck" not in text


@pytest.mark.e2e
def test_every_job_runs_without_what_is_planted() -> None:
    """With it, each is diagnosed."""
    runs = [[str(job.script), *job.arguments, "--steps", "2", "--fixed"] for job in JOBS]
    done = subprocess.run(
        [sys.executable, "-c", RUNS_ALL],
        input="\n".join("|".join(words) for words in runs),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    codes = done.stdout.split()
    failed = [words for words, code in zip(runs, codes, strict=True) if code != "0"]
    assert not failed, done.stderr


def test_a_job_for_gpus_says_so_in_one_sentence() -> None:
    for job in JOBS:
        if job.where == "gpu":
            text = job.script.read_text(encoding="utf-8")
            assert 'raise SystemExit("This job needs a CUDA device.")' in text
