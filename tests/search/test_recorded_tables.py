"""The search, replayed on jobs of which every plan was measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import search_quality

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
TABLES = sorted(RESULTS.glob("search-quality-*.json"))


def test_enough_jobs_were_recorded() -> None:
    assert len(TABLES) >= 4


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_it_comes_near_the_best_of_all_plans_in_a_third_of_the_trials(path: Path) -> None:
    table = json.loads(path.read_text(encoding="utf-8"))
    assert len(table["levers"]) == 5 and len(table["plans"]) == 32
    assert search_quality.replay(table)
