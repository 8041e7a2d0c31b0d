from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hotloop.diagnose.base import Case, Finding
from hotloop.diagnose.diagnosis import diagnose
from hotloop.diagnose.lever_gains import with_gains
from hotloop.diagnose.loading import loading
from hotloop.diagnose.rules.waiting_for_data import waiting_for_data
from hotloop.inspection import Inspection, LoaderLook
from tests.builders import GPU, Log
from tests.diagnose.making import case, with_loader


def waits(data: float = 16.0, compute: float = 4.0, steps: int = 20) -> Log:
    """Steps that wait this long for their data."""
    log = Log()
    for _ in range(steps):
        log.data(data, 8).forward(compute / 2, 8).backward(compute / 4).optimizer(compute / 4)
    return log


def job(workers: int = 0, item: float = 0.002, collate: float = 0.0, **changes: Any) -> Case:
    look = LoaderLook(
        worker=None,
        item_seconds=[item] * 80,
        item_cpu_seconds=[item] * 80,
        collate_seconds=[collate] * 10,
        batch_items=[8] * 10,
    )
    inspection = Inspection(steps=10, loaders=[look])
    return case(waits(), inspection, **with_loader(workers=workers, persistent=True), **changes)


def found(one: Case) -> Finding:
    finding = waiting_for_data(one)
    assert finding is not None
    return with_gains(one, finding)


def test_a_kept_item_is_not_loaded_however_little_workers_would_win() -> None:
    finding = found(job())
    assert finding.cause == "too_few_workers"
    assert finding.won_by("loader_workers") == finding.share < 0.7
    assert finding.won_by("cache_dataset") == pytest.approx(0.8)


def test_what_comes_after_the_items_is_left() -> None:
    half = found(job(item=0.001, collate=0.008))
    assert half.won_by("cache_dataset") == pytest.approx(0.4)


def test_where_the_work_is_to_be_kept_workers_win_by_their_own_reckoning() -> None:
    one = job()
    kept = replace(found(one), cause="decoding", share=0.8, levers=("loader_workers",))
    finding = with_gains(one, kept)
    assert finding.gains == {"loader_workers": loading(one).saved_with(one.cores)}
    assert finding.won_by("loader_workers") < finding.share == pytest.approx(0.8)


def test_of_workers_that_nobody_looked_into_nothing_is_reckoned() -> None:
    one = case(waits(), **with_loader(workers=1, persistent=True))
    finding = found(one)
    assert finding.levers == ("loader_workers", "cache_dataset") and finding.gains == {}
    assert finding.won_by("cache_dataset") == finding.share


def test_staged_files_win_what_is_waited_for_the_store() -> None:
    one = job(workers=2)
    assert one.inspection is not None
    (look,) = one.inspection.loaders
    waiting = replace(look, item_cpu_seconds=[0.0005] * 80)
    finding = found(replace(one, inspection=replace(one.inspection, loaders=[waiting])))
    assert finding.cause == "storage"
    assert finding.won_by("stage_data") == finding.share < finding.won_by("cache_dataset")


def test_a_gpu_wins_no_more_than_it_idles(monkeypatch: pytest.MonkeyPatch) -> None:
    one = job()
    software = replace(one.measurement.software, device=GPU)
    one = replace(one, measurement=replace(one.measurement, software=software))
    monkeypatch.setattr("hotloop.diagnose.rules.waiting_for_data.waited", lambda case: 0.3)
    finding = found(one)
    assert with_gains(one, finding).won_by("cache_dataset") == pytest.approx(0.3)


def test_a_diagnosis_has_them() -> None:
    (finding,) = (one for one in diagnose(job()).findings if one.rule == "waiting_for_data")
    assert finding.won_by("cache_dataset") == pytest.approx(0.8)
