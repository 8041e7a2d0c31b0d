"""hotloop answers at once. Ratios to a bare interpreter: the machine may be busy."""

from __future__ import annotations

import statistics
import sys
import time

import pytest

from .conftest import Desk

pytestmark = pytest.mark.e2e

ROUNDS = 15
ATTEMPTS = 3
HEAVY = {"torch", "numpy", "scipy", "msgspec", "rich", "dataclasses", "psutil", "pynvml", "asyncio"}


def seconds(desk: Desk, argv: list[str]) -> float:
    began = time.perf_counter()
    desk.call(argv)
    return time.perf_counter() - began


def ratio(desk: Desk, words: list[str]) -> float:
    """Of medians, the two taken in turn, so that a busy moment meets both."""
    pairs = [
        (seconds(desk, [sys.executable, "-m", "hotloop", *words]), seconds(desk, bare))
        for bare in [[sys.executable, "-c", "pass"]] * ROUNDS
    ]
    ours, theirs = ([pair[side] for pair in pairs] for side in (0, 1))
    return statistics.median(ours) / statistics.median(theirs)


@pytest.mark.parametrize(("words", "limit"), [(["--help"], 4.0), (["profile", "--frob"], 6.0)])
def test_answers_at_once(desk: Desk, words: list[str], limit: float) -> None:
    ratios = []
    for _ in range(ATTEMPTS):
        ratios.append(ratio(desk, words))
        if ratios[-1] < limit:
            return
    pytest.fail(f"hotloop {' '.join(words)} took {ratios} times as long as python -c pass")


@pytest.mark.parametrize("words", [["--help"], ["profile", "--help"], ["profile", "--frob"], []])
def test_imports_next_to_nothing(desk: Desk, words: list[str]) -> None:
    ended = desk.python("-X", "importtime", "-m", "hotloop", *words)
    lines = [line for line in ended.err.splitlines() if line.startswith("import time:")]
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}
    assert "argparse" in imported or not words  # it was looked in the right place
    assert not imported & HEAVY
