from __future__ import annotations

from dataclasses import replace

from hotloop.equivalence.beginning import beginning
from hotloop.evidence import Given, SettingSeen, StepSeen, Structure

RAN = Structure(
    steps=[StepSeen(0, True, True, 1, 0)] * 4,
    settings=[SettingSeen(0, 0, 0, "lr", "0.1"), SettingSeen(2, 0, 0, "lr", "0.05")],
    given=[
        Given(stream, step, 8, f"{stream} {step}")
        for step in range(4)
        for stream in ("loader", "model")
    ],
)
DIED = Structure(RAN.steps[:1], RAN.settings[:1], RAN.given[:4])
"""In its second step, after the model was called."""


def test_what_is_the_same_as_far_as_it_goes() -> None:
    found = beginning(DIED, RAN)
    assert (found.steps, found.batches, found.differs) == (1, 4, "")


def test_a_job_that_saw_nothing_shows_nothing() -> None:
    found = beginning(Structure(), RAN)
    assert (found.steps, found.batches, found.differs) == (0, 0, "")


def test_other_batches_settings_and_steps_are_named() -> None:
    other = replace(DIED, given=[*DIED.given[:-1], Given("model", 1, 8, "other")])
    assert beginning(other, RAN).differs == "the beginning of model holds other data"
    faster = replace(DIED, settings=[SettingSeen(0, 0, 0, "lr", "0.2")])
    assert beginning(faster, RAN).differs == "step 1: lr is 0.1 instead of 0.2"
    twice = replace(DIED, steps=[StepSeen(0, True, True, 2, 0)])
    assert beginning(twice, RAN).differs == "step 1: 1 backward passes instead of 2"


def test_a_stream_that_is_not_there_is_a_difference() -> None:
    more = replace(DIED, given=[*DIED.given, Given("model 1", 1, 8, "a critic's")])
    assert beginning(more, RAN).differs == "the beginning of model 1 holds other data"
