"""`hotloop.train`, in the caller's own process."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

import hotloop
from hotloop.errors import JobInvalid, NotApplied, PlanError
from hotloop.plan import LeverSetting, Plan

pytest.importorskip("torch")

FUSED = Plan((LeverSetting("fused_optimizer", {}),))
NO_GPU = Plan((LeverSetting("pin_memory", {}),))


@pytest.fixture
def owned() -> Any:
    from tests.runtime.owned import jobs

    return jobs


@pytest.fixture
def plain(owned: Any) -> list[Any]:
    found: list[Any] = owned.weights(hotloop.train(owned.Plain, quiet=True))
    return found


def test_public_names_are_found_and_no_others() -> None:
    assert {"TrainingJob", "train", "optimize", "profile"} <= set(dir(hotloop))
    assert all(getattr(hotloop, name) for name in hotloop.__all__)
    with pytest.raises(AttributeError, match="no attribute 'tune'"):
        hotloop.tune  # noqa: B018


def test_a_class_or_an_object(owned: Any, plain: list[Any]) -> None:
    job = owned.Plain()
    job.epochs = 1
    assert len(hotloop.train(job, quiet=True).epochs) == 1
    assert len(hotloop.train(owned.Plain, quiet=True).epochs) == 2


def test_says_how_it_goes_unless_told_not_to(owned: Any, capsys: Any) -> None:
    hotloop.train(owned.Plain)
    said = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[:2] for line in said] == [
        ["epoch 1", "7 steps"],
        ["epoch 2", "7 steps"],
    ]


def test_under_a_plan_the_weights_are_the_same(owned: Any, plain: list[Any]) -> None:
    import torch

    found = hotloop.train(owned.Plain, plan=FUSED, quiet=True)
    assert found.optimizer.param_groups[0]["fused"]
    for one, other in zip(owned.weights(found), plain, strict=True):
        torch.testing.assert_close(one, other)


def test_a_plan_from_a_file(owned: Any, tmp_path: Path) -> None:
    path = tmp_path / "hotloop.json"
    path.write_text(json.dumps({"version": 1, "levers": [{"lever": "fused_optimizer"}]}))
    assert hotloop.train(owned.Plain, plan=path, quiet=True).optimizer.param_groups[0]["fused"]
    with pytest.raises(PlanError, match="no plan file"):
        hotloop.train(owned.Plain, plan=str(tmp_path / "gone.json"))


def test_what_takes_no_effect_is_said(owned: Any, capsys: Any) -> None:
    with pytest.raises(NotApplied, match="pin_memory did not take effect") as caught:
        hotloop.train(owned.Plain, plan=NO_GPU, quiet=True)
    assert "keep_going=True" in caught.value.remedy
    trained = hotloop.train(owned.Plain, plan=NO_GPU, quiet=True, keep_going=True)
    assert len(trained.epochs) == 2
    assert "Training goes on without it" in capsys.readouterr().err


def test_torch_is_put_back(owned: Any) -> None:
    import torch

    from tests.runtime.conftest import fingerprint

    before, environment = fingerprint(torch), dict(os.environ)
    hotloop.train(owned.Plain, plan=FUSED, quiet=True)
    with pytest.raises(NotApplied):
        hotloop.train(owned.Plain, plan=NO_GPU, quiet=True)
    assert fingerprint(torch) == before
    assert dict(os.environ) == environment


@pytest.mark.parametrize("wrong", ["jobs.py:Mine", 3, object])
def test_what_is_no_job(wrong: Any) -> None:
    with pytest.raises(JobInvalid, match=r"needs a hotloop\.TrainingJob"):
        hotloop.train(wrong)


def test_a_job_that_lacks_a_method() -> None:
    class Empty(hotloop.TrainingJob):
        pass

    with pytest.raises(JobInvalid, match="Empty has no method model"):
        hotloop.train(Empty)


def test_settings_by_name(owned: Any) -> None:
    assert len(hotloop.train(owned.Plain, quiet=True, epochs=3).epochs) == 3
    assert len(hotloop.train(owned.Plain(), quiet=True, epochs=1).epochs) == 1
    with pytest.raises(JobInvalid, match="'warp' is no setting of Plain"):
        hotloop.train(owned.Plain, quiet=True, warp=9)


ALONE = """
from tests.runtime.owned.jobs import Plain

class Alone(Plain):
    pass
"""


@pytest.mark.parametrize("other", [{"torch": "1.0.0"}, {"script": "0123456789abcdef"}])
def test_a_plan_of_something_else_is_refused_unless_told(
    other: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "alone.py").write_text(ALONE)
    monkeypatch.syspath_prepend(tmp_path)
    kind = importlib.import_module("alone").Alone
    plan = Plan(FUSED.levers, **other)  # type: ignore[arg-type]
    try:
        with pytest.raises(PlanError, match=f"made for another {next(iter(other))}") as caught:
            hotloop.train(kind, plan=plan, quiet=True)
        assert "anyway=True" in caught.value.remedy
        assert hotloop.train(kind, plan=plan, quiet=True, anyway=True).epochs
    finally:
        del sys.modules["alone"]


def test_a_class_that_inherits_may_have_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "alone.py").write_text(ALONE)
    monkeypatch.syspath_prepend(tmp_path)
    kind = importlib.import_module("alone").Alone
    digest = hashlib.sha256((tmp_path / "alone.py").read_bytes()).hexdigest()[:16]
    try:
        mine = type("Mine", (kind,), {"__module__": __name__})
        assert hotloop.train(mine, plan=Plan(FUSED.levers, digest), quiet=True).epochs
    finally:
        del sys.modules["alone"]
