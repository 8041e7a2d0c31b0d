"""Of every optimisation there is a job on which it wins, and one on which it is refused."""

from __future__ import annotations

import json

import pytest
from lever_examples import EXAMPLES, Example

from hotloop.levers.registry import LEVERS
from tests.sources import ROOT

KEPT = json.loads((ROOT / "benchmarks" / "results" / "lever-examples-cpu.json").read_text())
NEEDS_TWO_NODES = {("affinity", True)}


def test_every_optimisation_has_both() -> None:
    wanted = {(lever, wins) for lever in LEVERS for wins in (True, False)}
    assert {(one.lever, one.wins) for one in EXAMPLES} == wanted - NEEDS_TWO_NODES


@pytest.mark.parametrize(
    "example", [one for one in EXAMPLES if one.where == "cpu"], ids=lambda example: example.key
)
def test_what_was_kept_of_those_for_a_cpu_is_as_said(example: Example) -> None:
    kept = KEPT[example.key]
    assert kept["as_said"] and (example.lever in kept["kept"]) == example.wins
    assert (kept["job"], kept["options"]) == (example.job, example.options)
    assert example.wins or kept["refused"]
