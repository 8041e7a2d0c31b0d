"""What the benchmark of the experiments makes of what they tell."""

from __future__ import annotations

from typing import Any

import pytest
from lab_bars import FIGURES, Bar, bars

from hotloop.experiments.registry import EXPERIMENTS
from tests.experiments.fake_lab import FakeLab

ASKED: dict[str, dict[str, Any]] = {"best": {"exhaustive": True}}


def told(figure: str, **lab: Any) -> dict[str, Any]:
    name = figure.partition("-")[0]
    fake: Any = FakeLab(True, **lab, **ASKED.get(name, {}))
    return EXPERIMENTS[name]().run(fake).data


@pytest.mark.parametrize("figure", FIGURES)
def test_every_figure_is_told_by_its_experiment(figure: str) -> None:
    found = bars(figure, told(figure))
    assert found and all(one.value is not None for one in found)


@pytest.mark.parametrize("figure", FIGURES)
def test_what_failed_has_not_held(figure: str) -> None:
    data = told(figure, law=lambda case: "It crashed.", told={"reason": "it fell over"})
    found = bars(figure, data)
    assert [one for one in found if one.held and "settings were run" not in one.what] == []


def test_a_bar_is_a_line() -> None:
    assert Bar("times", 61.234, 60.0).line == "held    times: 61.23 (≥ 60.0)"
    assert Bar("of it", 0.5, 0.4, at_least=False).line == "MISSED  of it: 0.5 (≤ 0.4)"
    assert Bar("times", None, 2.0).line == "MISSED  times: not measured (≥ 2.0)"


def test_a_fusion_whose_weights_differ_has_not_held() -> None:
    gain, weights = bars("fusion", told("fusion", told={"mean_difference": 0.5}))
    assert not weights.held and gain.what.startswith("times as fast as one by one")
