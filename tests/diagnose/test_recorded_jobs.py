"""Planted jobs that need a GPU, recorded on one and diagnosed again here."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from planted.suite import SUITE, Planted

from hotloop import codec
from hotloop.diagnose.case import case_of
from hotloop.diagnose.diagnosis import diagnose
from hotloop.figures import figures
from hotloop.profiling import looked_into
from hotloop.study import Study
from tests.planted_answers import problem

RECORDINGS = Path(__file__).parents[1] / "recordings" / "planted"
RECORDED = [planted for planted in SUITE if (RECORDINGS / f"{planted.name}.json.gz").exists()]


def recorded(planted: Planted) -> Study:
    packed = (RECORDINGS / f"{planted.name}.json.gz").read_bytes()
    return codec.decode(gzip.decompress(packed), Study)


def test_there_are_recordings() -> None:
    assert len(RECORDED) == len(list(RECORDINGS.iterdir())) >= 8


@pytest.mark.parametrize("planted", RECORDED, ids=lambda planted: planted.name)
def test_what_was_planted_is_found_first(planted: Planted) -> None:
    study = recorded(planted)
    timed = study.trials[0]
    assert timed.measurement is not None
    found = figures(timed.measurement)
    assert found is not None
    looked = looked_into(study)
    case = case_of(timed.measurement, found, study.machine, looked, study.roof, timed.power)
    assert problem(planted, diagnose(case)) == ""
