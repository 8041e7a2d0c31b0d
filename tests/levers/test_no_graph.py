from __future__ import annotations

import sys
from collections import Counter
from types import SimpleNamespace

import pytest

from hotloop.levers.no_graph import MOST_CHARACTERS, NoGraph

PLAIN = "torch.compile captured no graph"
SPARSE = "Attempted to wrap sparse Tensor\n  Explanation: …\n  Hint: …"


@pytest.fixture
def counters(monkeypatch: pytest.MonkeyPatch) -> dict[str, Counter[str]]:
    made: dict[str, Counter[str]] = {"graph_break": Counter(), "unimplemented": Counter()}
    monkeypatch.setitem(sys.modules, "torch._dynamo.utils", SimpleNamespace(counters=made))
    return made


def test_the_first_line_of_the_first(counters: dict[str, Counter[str]]) -> None:
    found = NoGraph()
    counters["unimplemented"].update([SPARSE, "another"])
    assert found.reason() == f"{PLAIN}: Attempted to wrap sparse Tensor"
    counters["graph_break"].update(["a break"])
    assert found.reason() == f"{PLAIN}: a break"


def test_what_was_compiled_before_is_not_meant(counters: dict[str, Counter[str]]) -> None:
    counters["graph_break"].update(["earlier", SPARSE])
    found = NoGraph()
    assert found.reason() == PLAIN
    counters["graph_break"].update([SPARSE])
    assert found.reason() == f"{PLAIN}: Attempted to wrap sparse Tensor"


def test_a_long_line_is_cut(counters: dict[str, Counter[str]]) -> None:
    found = NoGraph()
    counters["graph_break"].update(["x" * 1000])
    assert found.reason() == f"{PLAIN}: {'x' * MOST_CHARACTERS}"


def test_without_a_word_there_is_no_reason(
    counters: dict[str, Counter[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = NoGraph()
    counters["graph_break"].update([" "])
    assert found.reason() == PLAIN
    monkeypatch.delitem(sys.modules, "torch._dynamo.utils")
    assert NoGraph().reason() == PLAIN
