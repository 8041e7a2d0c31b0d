from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hotloop import plan
from hotloop.errors import PlanError
from hotloop.levers import registry


def load(tmp_path: Path, document: Any) -> plan.Plan:
    path = tmp_path / "hotloop.json"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return plan.load(path)


@pytest.fixture
def lever(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(registry.LEVERS, "fused", object())
    return "fused"


def test_a_plan_may_be_empty(tmp_path: Path) -> None:
    assert load(tmp_path, {"version": 1}).is_empty
    assert load(tmp_path, {"version": 1, "levers": []}) == plan.Plan()


def test_settings_are_kept_in_order(tmp_path: Path, lever: str) -> None:
    levers = [{"lever": lever, "setting": {"n": 1}}, {"lever": lever}]
    found = load(tmp_path, {"version": 1, "levers": levers})
    assert not found.is_empty
    assert found.levers == (plan.LeverSetting(lever, {"n": 1}), plan.LeverSetting(lever, {}))


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("{", "cannot be read as JSON"),
        ("", "cannot be read as JSON"),
        ("[]", 'no "version"'),
        ('"plan"', 'no "version"'),
        ({}, 'no "version"'),
        ({"version": "1"}, 'no "version"'),
        ({"version": 2}, "version 2"),
        ({"version": 1, "levers": {}}, "must be a list"),
        ({"version": 1, "levers": ["fused"]}, "does not have"),
        ({"version": 1, "levers": [{}]}, "does not have"),
        ({"version": 1, "levers": [{"lever": "warp"}]}, "'warp'"),
        ({"version": 1, "levers": [{"lever": ["fused"]}]}, "['fused']"),
        ({"version": 1, "levers": [{"lever": "fused", "setting": 3}]}, "setting"),
        ({"version": 1, "levers": [{"lever": "fused", "setting": [1]}]}, "setting"),
    ],
)
def test_what_cannot_be_applied_as_written_is_refused(
    tmp_path: Path, lever: str, document: Any, says: str
) -> None:
    with pytest.raises(PlanError, match=r"hotloop\.json") as caught:
        load(tmp_path, document)
    assert says in caught.value.sentence
    assert caught.value.remedy


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PlanError, match="no plan file"):
        plan.load(tmp_path / "hotloop.json")


@pytest.mark.parametrize("kind", ["folder", "binary"])
def test_what_is_no_text(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "hotloop.json"
    if kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PlanError, match="not a plan"):
        plan.load(path)
