from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.inspection import Inspection, StepMemory
from hotloop.report.breakdown_rows import Breakdown, Part
from hotloop.report.step_memory_rows import StepCourse, highest_words, rows
from tests.builders import trial
from tests.report.rich import step_memory
from tests.report.studies import searched

TIMED = Breakdown(
    "as it is",
    0.1,
    (
        Part("data", "waiting for data", 0.01, 0.1),
        Part("forward", "forward and loss", 0.03, 0.3),
        Part("backward", "backward", 0.05, 0.5),
        Part("optimizer", "optimizer", 0.01, 0.1),
    ),
)


def course(seen: StepMemory | None, *timed: Breakdown) -> StepCourse | None:
    looked = trial(purpose="look", inspection=Inspection(step_memory=seen))
    return rows(searched(None, trial(), looked), timed)


def drawn(seen: StepMemory, *timed: Breakdown) -> StepCourse:
    found = course(seen, *timed)
    assert found is not None
    return found


def test_phases_are_as_long_as_they_were_timed() -> None:
    found = drawn(step_memory(), TIMED)
    assert found.timed and found.where == "GPU"
    lengths = [(one.phase, round(one.end - one.begin, 6)) for one in found.stretches]
    assert lengths[1:] == [("forward", 0.03), ("backward", 0.05), ("optimizer", 0.01)]
    places = [moment.at for moment in found.moments]
    assert places[0] == 0.0 and places == sorted(places)
    assert places[-1] == pytest.approx(found.length) == 0.09 + lengths[0][1]


def test_waiting_does_not_fill_the_drawing() -> None:
    long = replace(TIMED, parts=(replace(TIMED.parts[0], seconds=9.0), *TIMED.parts[1:]))
    assert drawn(step_memory(), long).length < 0.1


def test_kinds_add_up_to_what_was_handed_out() -> None:
    seen = step_memory()
    found = drawn(seen, TIMED)
    assert [moment.together for moment in found.moments] == seen.total
    assert "At its highest, in the backward pass, 286 MiB: weights 38.1 MiB" in highest_words(found)


def test_without_a_timed_step_operators_are_counted() -> None:
    found = drawn(step_memory())
    assert not found.timed
    assert found.length == pytest.approx(step_memory().operators, abs=1)


def test_on_a_cpu_it_says_what_is_not_in_it() -> None:
    found = drawn(step_memory("cpu"), TIMED)
    assert found.where == "host" and "is not known" in found.note
    assert "not known" not in drawn(step_memory(), TIMED).note


def test_what_happens_to_gradients_belongs_to_the_optimizer() -> None:
    seen = step_memory()
    phases = [*seen.phase[:41], *["forward"] * 5, *seen.phase[46:]]
    found = drawn(replace(seen, phase=phases), TIMED)
    assert [one.phase for one in found.stretches] == ["data", "forward", "backward", "optimizer"]


def test_microbatches_take_turns() -> None:
    seen = step_memory()
    half = ["forward"] * 10 + ["backward"] * 10
    found = drawn(replace(seen, phase=["data", *half, *half, *["optimizer"] * 20]), TIMED)
    forward = [one.end - one.begin for one in found.stretches if one.phase == "forward"]
    assert len(forward) == 2 and round(sum(forward), 6) == 0.03


def test_nothing_was_seen() -> None:
    assert course(None, TIMED) is None
    assert course(StepMemory("cpu"), TIMED) is None
    assert rows(searched(None, trial()), (TIMED,)) is None
