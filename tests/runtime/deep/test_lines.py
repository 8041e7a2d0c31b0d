from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from hotloop.inspection import Frame, Samples
from hotloop.runtime.deep.lines import UNSEEN, lines
from hotloop.runtime.look import loading
from tests.runtime.deep.conftest import Train

LOOP = Frame("torch/worker.py", 3, "_worker_loop", source="r = index_queue.get()")
MAIN = Frame("train.py", 9, "main", is_users=True)
ITEM = Frame("data.py", 5, "Data.__getitem__", is_users=True)
LIBRARY = Frame("PIL/Image.py", 7, "open")


def samples(*stacks: list[Frame], weight_ns: int = 10**9) -> Samples:
    frames = [frame for stack in stacks for frame in stack]
    numbers = iter(range(len(frames)))
    return Samples(
        frames=frames,
        stacks=[[next(numbers) for _ in stack] for stack in stacks],
        time_ns=list(range(len(stacks))),
        stack=list(range(len(stacks))),
        weight_ns=[weight_ns] * len(stacks),
    )


def test_a_line_has_what_it_calls() -> None:
    seen = samples([MAIN, LIBRARY], [MAIN], [MAIN, ITEM, LIBRARY], [LIBRARY], [])
    found = [(line.place.file, line.seconds, line.share) for line in lines([(None, seen)])]
    assert found == [("train.py", 2.0, 0.5), ("data.py", 1.0, 0.25), ("PIL/Image.py", 1.0, 0.25)]


def test_a_worker_is_not_where_it_was_forked() -> None:
    fetch = Frame("torch/worker.py", 4, "_worker_loop", source="data = fetcher.fetch(index)")
    seen = samples([MAIN, LOOP, LIBRARY], [MAIN, fetch, ITEM, LIBRARY], [MAIN, fetch])
    found = [(line.worker, line.place, line.share) for line in lines([(1, seen)])]
    assert found == [(1, LOOP, 0.5), (1, ITEM, 0.5)]


def test_lines_that_take_long_are_seen(train: Train, step: Callable[[], None]) -> None:
    def slow_step() -> None:
        time.sleep(0.02)
        step()

    report = train("python").until_seen(slow_step)
    dearest = report.lines[0]
    assert dearest.place.source == "time.sleep(0.02)" and dearest.place.file == __file__
    assert dearest.share > 0.5
    assert sum(line.share for line in report.lines) == pytest.approx(1)


class Slow:
    def __len__(self) -> int:
        return 4000

    def __getitem__(self, index: int) -> float:
        time.sleep(0.002)
        return float(index)


def test_lines_of_workers(
    train: Train, step: Callable[[], None], torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "EVERY_SECONDS", 0.02)
    job = train("python", seconds=0.5)
    batches = iter(torch.utils.data.DataLoader(Slow(), 4, num_workers=1))

    def loading_step() -> None:
        next(batches)
        step()

    report = job.until_seen(loading_step)
    assert UNSEEN not in report.problems
    workers = [line for line in report.lines if line.worker is not None]
    assert any(line.place.source == "time.sleep(0.002)" for line in workers)
    assert {line.worker for line in workers} == {0}
    assert sum(line.share for line in workers) == pytest.approx(1)


def test_workers_that_cannot_be_seen_are_said_to_be(
    train: Train, step: Callable[[], None], torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading.LoaderProbe, "attach", lambda probe, patches: None)
    job = train("python")
    batches = iter(torch.utils.data.DataLoader(Slow(), 4, num_workers=1))
    next(batches)
    assert UNSEEN in job.until_seen(step).problems
