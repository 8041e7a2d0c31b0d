from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.sightings import (
    Sighting,
    in_workers,
    innermost,
    seconds_by_line,
    share,
    sightings,
)
from hotloop.inspection import Frame, Inspection, LoaderLook, Samples
from tests.diagnose.gpu_making import case, line

MAIN, COLLATE = line(10), line(20, "data.py", "collate")
LIBRARY = Frame("/lib/torch/_tensor.py", 3, "backward")
SAMPLES = Samples(
    frames=[MAIN, COLLATE, LIBRARY],
    stacks=[[0, 1], [0, 2]],
    # Steps take 20 ms: 4 of data, 5 forward, 8 backward, 3 for the optimizer.
    time_ns=[1_000_000, 2_000_000, 12_000_000],
    stack=[0, 0, 1],
    weight_ns=[5_000_000, 5_000_000, 10_000_000],
)


def seen() -> Case:
    made = case(lambda scene: scene.log.step())
    inspection = Inspection(samples=SAMPLES, loaders=[LoaderLook(0, samples=SAMPLES)])
    return replace(made, inspection=inspection)


class TestSightings:
    def test_each_has_its_phase_and_equal_ones_are_one(self) -> None:
        found = sightings(seen())
        assert [each.phase for each in found] == ["data", "backward"]
        assert [each.seconds for each in found] == pytest.approx([0.01, 0.01])
        assert found[0].stack == (MAIN, COLLATE)

    def test_there_are_none_where_nobody_looked(self) -> None:
        assert sightings(replace(seen(), inspection=None)) == []
        assert sightings(replace(seen(), looked=None)) == []
        assert in_workers(replace(seen(), inspection=None)) == []

    def test_workers_know_no_phases(self) -> None:
        assert {each.phase for each in in_workers(seen())} == {""}

    def test_the_users_own_line_is_the_innermost_of_theirs(self) -> None:
        found = sightings(seen())
        assert [each.line for each in found] == [COLLATE, MAIN]
        assert innermost([LIBRARY]) is None

    def test_a_function_may_be_named_with_its_file(self) -> None:
        one = Sighting("data", (MAIN, COLLATE), 1.0)
        assert one.passes("collate") and one.passes("data.py:collate")
        assert not one.passes("train.py:collate") and not one.passes("decode")


def test_lines_the_dearest_first() -> None:
    found = [
        Sighting("data", (MAIN,), 1.0),
        Sighting("data", (MAIN, COLLATE), 2.0),
        Sighting("forward", (MAIN, LIBRARY), 3.0),
        Sighting("forward", (LIBRARY,), 9.0),
    ]
    assert seconds_by_line(found) == [(MAIN, 4.0), (COLLATE, 2.0)]
    assert seconds_by_line(found, lambda one: one.phase == "data") == [(COLLATE, 2.0), (MAIN, 1.0)]


def test_a_share_is_among_what_it_is_asked_among() -> None:
    found = [Sighting("data", (MAIN,), 1.0), Sighting("forward", (COLLATE,), 3.0)]
    assert share(found, lambda one: one.passes("collate")) == 0.75
    in_data = share(found, lambda one: one.passes("collate"), lambda one: one.phase == "data")
    assert in_data == 0.0
    assert share([], lambda one: True) == 0.0
