"""What every optimisation must have before it may be offered."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hotloop.levers.base import Effect, Group, Lever
from hotloop.levers.registry import LEVERS
from hotloop.measurement import Software
from tests import builders

ROOT = Path(__file__).resolve().parents[2]
HEADINGS = ["What it does", "When it helps", "When it loses", "What it cannot do"]

each = pytest.mark.parametrize("lever", LEVERS.values(), ids=LEVERS)


@pytest.fixture
def jobs() -> Any:
    pytest.importorskip("torch")
    from tests.levers import jobs

    return jobs


def seen_jobs(jobs: Any) -> list[Any]:
    on_gpu = replace(builders.measurement(), software=Software(device=builders.GPU))
    return [
        jobs.seen(cores=1),
        jobs.seen(cores=64, measurement=on_gpu),
        jobs.seen(loaders=[], optimizers=[], models=[]),
    ]


def test_there_are_levers() -> None:
    """The other tests would be content with none."""
    assert {"tf32", "loader_workers", "pin_memory", "fused_optimizer"} <= LEVERS.keys()


def test_every_file_of_a_lever_is_registered() -> None:
    for path in (ROOT / "src/hotloop/levers").glob("*.py"):
        source = path.read_text(encoding="utf-8")
        if re.search(r"^class \w+\(Lever\):", source, re.M):
            assert path.stem in LEVERS


@each
def test_it_is_a_file_of_its_own(lever: type[Lever]) -> None:
    assert lever.__module__ == f"hotloop.levers.{lever.name}"
    assert inspect.getdoc(inspect.getmodule(lever))
    assert (ROOT / f"tests/levers/test_{lever.name}.py").is_file()


@each
def test_it_says_what_it_is(lever: type[Lever]) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", lever.name)
    assert lever.summary == lever.summary.strip()
    assert lever.summary and "\n" not in lever.summary and not lever.summary.endswith(".")
    assert len(lever.summary) <= 70
    assert isinstance(lever.group, Group)
    assert isinstance(lever.effect, Effect)


@each
def test_it_says_what_it_is_worth_where_memory_is_the_objective(lever: type[Lever]) -> None:
    """For itself: one that inherits the answer has not been asked."""
    assert "not_for_memory" in vars(lever)
    reason = lever.not_for_memory
    assert reason == reason.strip() and not reason.endswith(".")
    assert not reason[:1].isupper()  # it becomes part of a sentence
    if lever.group is Group.DATA:  # batches that come sooner are kept somewhere
        assert reason
    if not reason:
        assert not any(LEVERS[needed].not_for_memory for needed in lever.requires)


@each
def test_it_goes_with_levers_that_exist(lever: type[Lever]) -> None:
    named = {*lever.requires, *lever.conflicts}
    assert named <= LEVERS.keys() - {lever.name}
    assert not set(lever.requires) & set(lever.conflicts)


@each
def test_it_has_a_card(lever: type[Lever]) -> None:
    card = (ROOT / f"docs/levers/{lever.name}.md").read_text(encoding="utf-8")
    assert card.startswith(f"# {lever.name}\n")
    assert [heading for heading in re.findall(r"^## (.+)$", card, re.M) if heading in HEADINGS] == (
        HEADINGS
    )
    for part in re.split(r"^## .+$", card, flags=re.M)[1:]:
        assert part.strip()


@each
def test_its_card_says_above_all_what_the_program_says(lever: type[Lever]) -> None:
    """What it does to the training, what it goes with, and its settings as they are by default."""
    head = (ROOT / f"docs/levers/{lever.name}.md").read_text(encoding="utf-8")
    head = head.partition("\n## ")[0]
    sentences = " ".join(head.partition("|")[0].split())
    opponents = [other.name for other in LEVERS.values() if lever.name in other.conflicts]
    apart = [name for name in LEVERS if name in {*lever.conflicts, *opponents}]
    assert f"Effect: `{lever.effect}`" in sentences
    for said, named in (("Requires", lever.requires), ("Does not go with", apart)):
        names = ", ".join(f"`{name}`" for name in named)
        assert (f"{said} {names}." in sentences) if named else said not in sentences
    settings = re.findall(r"^\| `(\w+)` \| (\S+) \|", head, re.M)
    assert settings == [(one.name, _written(one.default)) for one in fields(lever)]  # type: ignore[arg-type]


@each
def test_its_settings_are_plain_values_with_defaults(lever: type[Lever]) -> None:
    assert is_dataclass(lever)
    for setting in fields(lever):
        assert isinstance(setting.default, bool | int | float | str)
    assert lever().problem() == ""


@each
def test_what_it_would_try_can_be_tried(lever: type[Lever], jobs: Any) -> None:
    for seen in seen_jobs(jobs):
        settings = lever.settings(seen)
        assert all(lever(**setting).problem() == "" for setting in settings)
        assert len({tuple(sorted(setting.items())) for setting in settings}) == len(settings)
        if lever.expected(seen).is_worth_trying:
            assert settings


@each
def test_what_it_expects_is_a_share_or_a_reason(lever: type[Lever], jobs: Any) -> None:
    for seen in seen_jobs(jobs):
        expected = lever.expected(seen)
        assert 0 <= expected.share <= 1
        assert expected.is_worth_trying or expected.share == 0
        assert not expected.reason.endswith(".")


@each
def test_when_nothing_ran_it_did_not_take_effect(
    lever: type[Lever], jobs: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs.torch.cuda, "is_initialized", lambda: False)
    made = lever()
    with jobs.precision_put_back(), jobs.switches_put_back(), jobs.under(made):
        pass
    receipt = made.receipt()
    assert receipt.lever == lever.name
    assert not receipt.applied
    assert receipt.reason and not receipt.reason.endswith(".")  # it becomes part of a sentence


def _written(default: Any) -> str:
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:g}" if isinstance(default, float) else str(default)
