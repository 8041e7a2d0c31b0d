from __future__ import annotations

import pytest

from hotloop.trial.result import Failure
from hotloop.trial.saying import MOST, PACKAGE, said


def told(message: str, *ours: str) -> str:
    return said(Failure("ValueError", message), ours)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("", "ValueError"),
        ("no such column.", "ValueError: no such column"),
        ("\n  bad  shape\nand more\n", "ValueError: bad shape"),
        ("backend='inductor' raised:\nCppCompileError: no compiler\nsee below", "ValueError: "
         "backend='inductor' raised: CppCompileError: no compiler"),
        ("it announces:\n", "ValueError: it announces"),
    ],
)  # fmt: skip
def test_the_kind_and_the_first_line_that_says_something(message: str, expected: str) -> None:
    assert told(message) == expected


def test_a_long_message_is_cut_between_words() -> None:
    found = told("word " * 100)
    assert found.endswith("word …")
    assert len(found) <= len("ValueError: ") + MOST + 2
    assert told("x" * 500) == f"ValueError: {'x' * MOST} …"


def test_files_of_ours_are_named_without_where_they_lie() -> None:
    message = f"no 'a.pt' in '/tmp/scratch-1/deep/a.pt', {PACKAGE}/levers/bf16.py:3, /data/a.pt"
    expected = "ValueError: no 'a.pt' in 'a.pt', bf16.py:3, /data/a.pt"
    assert told(message, "/tmp/scratch-1") == expected


def test_a_neighbour_whose_name_begins_alike_is_the_users() -> None:
    assert (
        told("no /tmp/scratch-10/a.pt", "/tmp/scratch-1") == "ValueError: no /tmp/scratch-10/a.pt"
    )
