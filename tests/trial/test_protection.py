"""Which folders are protected, and which are let through."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.trial import protection
from tests.builders import job


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


class TestToProtect:
    def test_where_it_runs_where_it_lies_and_home(self, tmp_path: Path, home: Path) -> None:
        for name in ("project", "elsewhere"):
            (tmp_path / name).mkdir()
        one = job(tmp_path / "project", target="../elsewhere/train.py", args=())
        found = protection.to_protect(one)
        assert found == [str(tmp_path / name) for name in ("elsewhere", "home", "project")]

    def test_what_its_arguments_name(self, tmp_path: Path, home: Path) -> None:
        for name in ("project", "data", "runs", "single"):
            (tmp_path / name).mkdir()
        (tmp_path / "single" / "model.pt").write_text("")
        args = (
            str(tmp_path / "data"),
            f"--out={tmp_path / 'runs'}",
            "../single/model.pt",
            "",
            "--epochs",
            "3",
            "x" * 5000,
        )
        found = protection.to_protect(job(tmp_path / "project", args=args))
        names = ("data", "home", "project", "runs", "single")
        assert found == [str(tmp_path / name) for name in names]

    def test_never_everything(self, tmp_path: Path, home: Path) -> None:
        assert "/" not in protection.to_protect(job(tmp_path, args=("/",)))


def test_caches_that_are_there_outlast_a_trial(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CACHE_HOME", *protection._CACHES):
        monkeypatch.delenv(name, raising=False)
    assert protection.kept_caches() == []
    for name in ("torch", "project"):  # what the second holds nobody knows
        (home / ".cache" / name).mkdir(parents=True)
    (tmp_path / "hf").mkdir()
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "gone"))
    assert protection.kept_caches() == [str(home / ".cache" / "torch"), str(tmp_path / "hf")]


def test_what_does_not_exist_yet_is_protected_by_its_parent(tmp_path: Path, home: Path) -> None:
    for name in ("project", "runs"):
        (tmp_path / name).mkdir()
    args = (f"--out={tmp_path / 'runs' / 'new' / 'deep'}", '--log="../runs/x"')
    found = protection.to_protect(job(tmp_path / "project", args=args))
    assert found == [str(tmp_path / name) for name in ("home", "project", "runs")]


def test_what_was_kept_apart_outside_of_overlays_is_told_too(tmp_path: Path) -> None:
    scratch, report = tmp_path / "scratch", tmp_path / "shield.json"
    (scratch / "mirror/data/results").mkdir(parents=True)
    (scratch / "mirror/data/results/model.pt").touch()
    report.write_text('{"way": "overlay", "protected": ["/somewhere/project"], "why": null}')
    assert "/data/results/model.pt" in protection.shielding(report, scratch).kept_apart
