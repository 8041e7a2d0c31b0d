"""What optimisations did on a real GPU: one trial each, kept by `benchmarks/lever_trials.py`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from hotloop import codec
from hotloop.figures import step_times
from hotloop.levers.registry import LEVERS
from hotloop.study import Study
from hotloop.trial.trial import State
from tests.sources import ROOT

RECORDINGS = sorted((ROOT / "tests" / "recordings" / "levers").glob("*.json.gz"))
TOLD = json.loads((ROOT / "benchmarks" / "results" / "lever-trials-h200.json").read_text())


def test_what_is_told_is_what_was_recorded() -> None:
    assert {path.name.removesuffix(".json.gz") for path in RECORDINGS} == TOLD.keys()
    assert TOLD.keys() <= LEVERS.keys()


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name.removesuffix(".json.gz"))
def test_it_took_effect_on_a_gpu(path: Path) -> None:
    lever = path.name.removesuffix(".json.gz")
    study = codec.decode(gzip.decompress(path.read_bytes()), Study)
    (trial,) = study.trials
    assert trial.state is State.COMPLETE and study.machine.gpus
    (receipt,) = [one for one in trial.receipts if one.lever == lever]
    assert receipt.applied and receipt.evidence == TOLD[lever]["evidence"]
    assert [one.lever for one in trial.plan.levers if one.lever != lever] == TOLD[lever]["beside"]
    assert trial.measurement is not None
    found = step_times(trial.measurement)
    assert found is not None
    assert found.step.mean == pytest.approx(TOLD[lever]["seconds_a_step"][1])
