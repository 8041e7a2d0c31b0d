from __future__ import annotations

from hotloop.report.refusal_rows import untried
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
