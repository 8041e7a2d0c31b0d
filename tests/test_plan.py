from __future__ import annotations

import json
from dataclasses import dataclass
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


@dataclass
class Fused:
    """Stands in for a lever: a plan looks at its fields and asks it for problems."""

    n: int = 0

    def problem(self) -> str:
        return "n may not be negative" if self.n < 0 else ""


@pytest.fixture
def lever(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(registry.LEVERS, "fused", Fused)
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
        ({"version": 1, "levers": [{"lever": "fused", "setting": {"m": 1}}]}, "no setting 'm'"),
        (
            {"version": 1, "levers": [{"lever": "fused", "setting": {"n": "1"}}]},
            "must be of type int",
        ),
        ({"version": 1, "levers": [{"lever": "fused", "setting": {"n": -1}}]}, "negative"),
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


def test_what_is_saved_is_what_is_loaded(tmp_path: Path, lever: str) -> None:
    made = plan.Plan((plan.LeverSetting(lever, {"n": 3}),), "abc", "2.13.0", "NVIDIA H200", True)
    plan.save(made, tmp_path / "saved.json")
    assert plan.load(tmp_path / "saved.json") == made


@pytest.mark.parametrize("what", ["script", "torch", "gpu"])
def test_a_plan_for_something_else_is_refused(what: str) -> None:
    here: dict[str, Any] = {"script": "abc", "torch": "2.13.0", "gpu": "NVIDIA H200"}
    plan.require_same(plan.Plan((), **here), **here)
    plan.require_same(plan.Plan(), **here)  # made for nothing in particular
    with pytest.raises(PlanError, match="made for another") as refused:
        plan.require_same(plan.Plan((), **{**here, what: "other"}), **here)
    assert "--anyway" in refused.value.remedy
