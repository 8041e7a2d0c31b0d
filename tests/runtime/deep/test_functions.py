from __future__ import annotations

import pstats
from collections.abc import Callable
from pathlib import Path

from hotloop.runtime.deep.functions import Stats, without_ours
from hotloop.runtime.tracebacks import OURS
from tests.runtime.deep.conftest import Train

Step = Callable[[], None]


def helper(depth: int) -> int:
    return depth and helper(depth - 1) + 1


def test_calls_own_and_cumulative_time(train: Train, step: Step, tmp_path: Path) -> None:
    def with_helper() -> None:
        helper(3)
        step()

    report = train("python").until_seen(with_helper)
    assert report.functions is not None
    rows = {row.name: row for row in reversed(report.functions.rows)}
    (row,) = [row for row in report.functions.rows if row.file == __file__ and row.name == "helper"]
    assert (row.calls, row.primitive_calls) == (16, 4)
    assert row.line == helper.__code__.co_firstlineno
    assert row.is_users and 0 < row.own <= row.cumulative
    assert rows["backward"].calls == 4 and not rows["backward"].is_users
    owns = [row.own for row in report.functions.rows]
    assert owns == sorted(owns, reverse=True)
    assert not [row for row in report.functions.rows if row.file.startswith(OURS)]


def test_pstats_reads_what_is_left(train: Train, step: Step, tmp_path: Path) -> None:
    report = train("python").until_seen(step)
    assert report.files == ["python.pstats"]
    read = pstats.Stats(str(tmp_path / "python.pstats"))
    assert report.functions is not None
    calls = {(row.file, row.line, row.name): row.calls for row in report.functions.rows}
    stats = read.stats  # type: ignore[attr-defined]
    assert {function: entry[1] for function, entry in stats.items()} == calls
    (forward,) = [found for found in stats if found[2] == "forward" and "jobs.py" in found[0]]
    assert forward in {caller for entry in stats.values() for caller in entry[4]}
    read.sort_stats("cumulative")


def test_what_our_own_probes_call_is_left_out() -> None:
    ours, users = (OURS + "runtime/patches.py", 1, "call"), ("train.py", 1, "step")
    append, to = ("~", 0, "<append>"), ("~", 0, "<method 'to' of 'torch._C.TensorBase' objects>")
    stats: Stats = {
        ours: (5, 5, 1.0, 2.0, {users: (5, 5, 1.0, 2.0)}),
        append: (7, 7, 0.7, 0.7, {ours: (5, 5, 0.5, 0.5), users: (2, 2, 0.2, 0.2)}),
        to: (3, 3, 0.3, 0.3, {ours: (3, 3, 0.3, 0.3)}),
        users: (1, 1, 1.0, 4.0, {}),
    }
    kept = without_ours(stats)
    assert set(kept) == {append, to, users}
    assert kept[append][:2] == (2, 2) and list(kept[append][4]) == [users]
    assert kept[to][:2] == (3, 3)
