from __future__ import annotations

from hotloop.report.refusal_rows import untried, why
from hotloop.study import Refused


def test_the_same_reason_is_said_once() -> None:
    refused = (
        Refused("tf32", "slower", True, 4.0),
        Refused("allocator", "it is not among --only", False),
        Refused("pin_memory", "there is nothing to copy on a CPU", False),
        Refused("threads", "it is not among --only", False),
    )
    assert untried(refused) == (
        ("allocator, threads", "it is not among --only"),
        ("pin_memory", "there is nothing to copy on a CPU"),
    )
    assert untried(()) == ()


def test_of_one_whose_trial_failed_its_output_is_named() -> None:
    assert why(Refused("tf32", "slower", True, 4.0)) == "slower"
    failed = Refused("bf16", "It failed: ValueError: no.", True, 4.0, "trial-3/output.log")
    told = "It failed: ValueError: no; its output is in trial-3/output.log, beside the study"
    assert why(failed) == told
