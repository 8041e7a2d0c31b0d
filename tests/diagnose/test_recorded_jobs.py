"""Planted jobs that need a GPU, recorded on one and diagnosed again here."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from keeping import diagnosed_again
from planted.suite import SUITE, Planted

from tests.planted_answers import problem

RECORDINGS = Path(__file__).parents[1] / "recordings" / "planted"
RECORDED = [planted for planted in SUITE if (RECORDINGS / f"{planted.name}.json.gz").exists()]


def test_there_are_recordings() -> None:
    assert len(RECORDED) == len(list(RECORDINGS.iterdir())) >= 8


@pytest.mark.parametrize("planted", RECORDED, ids=lambda planted: planted.name)
def test_what_was_planted_is_found_first(planted: Planted) -> None:
    record = RECORDINGS / f"{planted.name}.json.gz"
    assert problem(planted, diagnosed_again(record)) == ""


NAMED = re.compile(r"(\d+(?:\.\d+)?)% of a step")


@pytest.mark.parametrize("planted", RECORDED, ids=lambda planted: planted.name)
def test_nothing_promises_more_than_its_title_says_that_it_takes(planted: Planted) -> None:
    found = diagnosed_again(RECORDINGS / f"{planted.name}.json.gz")
    for finding in found.findings:
        if named := NAMED.match(finding.title):
            assert finding.share <= float(named[1]) / 100 + 0.006, finding.title
