from __future__ import annotations

from hotloop.comparing import Group, judged
from hotloop.report.compare_rows import rows


def test_an_interval_around_one_may_be_either() -> None:
    before, after = Group((0.10, 0.11, 0.12), None), Group((0.10, 0.12, 0.13), None)
    told = rows(judged(before, after, 0.05)).headline
    assert told.startswith("Cannot tell: a step takes 1.05")
    assert told.endswith(" as long: it may be slower or faster.")
