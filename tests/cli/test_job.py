from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from hotloop.cli.job import require_script, split_entry, words_of
from hotloop.cli.main import parser
from hotloop.errors import NotPython, ScriptNotFound, UsageError


@pytest.mark.parametrize(
    ("words", "job"),
    [
        ("train.py", ("train.py", False, ())),
        ("train.py --lr 3e-4", ("train.py", False, ("--lr", "3e-4"))),
        ("train.py --steps 5 --json", ("train.py", False, ("--steps", "5", "--json"))),
        ("train.py --help", ("train.py", False, ("--help",))),
        ("train.py -m x -- y", ("train.py", False, ("-m", "x", "--", "y"))),
        ("-m pkg.train", ("pkg.train", True, ())),
        ("-m pkg.train --python x -h", ("pkg.train", True, ("--python", "x", "-h"))),
        ("--python py train.py --python other", ("train.py", False, ("--python", "other"))),
        ("-- train.py --lr 1", ("train.py", False, ("--lr", "1"))),
        ("--python py -- train.py", ("train.py", False, ())),
        ("-- -m pkg", ("-m", False, ("pkg",))),
    ],
)
@pytest.mark.parametrize("command", ["run", "profile"])
def test_what_follows_the_script_is_the_scripts(
    command: str, words: str, job: tuple[str, bool, tuple[str, ...]]
) -> None:
    assert words_of(parser().parse_args([command, *words.split()])) == job


class TestSplitEntry:
    @pytest.mark.parametrize(
        ("target", "is_module", "parts"),
        [
            ("train.py", False, ("train.py", "")),
            ("jobs.py:Mine", False, ("jobs.py", "Mine")),
            ("a/b:c/jobs.py:Mine", False, ("a/b:c/jobs.py", "Mine")),
            ("pkg.jobs:Mine", True, ("pkg.jobs", "Mine")),
            ("pkg.train", True, ("pkg.train", "")),
        ],
    )
    def test_a_class_after_a_colon(
        self, target: str, is_module: bool, parts: tuple[str, str]
    ) -> None:
        assert split_entry(target, is_module) == parts

    def test_a_file_that_is_really_named_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("jobs.py:Mine").touch()
        assert split_entry("jobs.py:Mine", False) == ("jobs.py:Mine", "")

    @pytest.mark.parametrize("target", ["jobs.py:", "jobs.py:3", "jobs.py:my-job", ":Mine"])
    def test_what_is_no_class(self, target: str) -> None:
        with pytest.raises(UsageError, match="names no class"):
            split_entry(target, False)


class TestRequireScript:
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("train.py", b"print(1)"),
            ("train.py", b"not python at all ("),  # Python itself will say so, and better
            ("train.py", b""),
            ("train.py", "# -*- coding: latin-1 -*-\n# caf\xe9".encode("latin-1")),
            ("train", b"#!/usr/bin/env python\nprint(1)"),
            ("train.txt", b"x = 1\n"),
        ],
    )
    def test_a_script(self, name: str, content: bytes, tmp_path: Path) -> None:
        (tmp_path / name).write_bytes(content)
        require_script(str(tmp_path / name))

    def test_a_zipped_application(self, tmp_path: Path) -> None:
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("__main__.py", "print(1)")
        (tmp_path / "train.pyz").write_bytes(content.getvalue())
        require_script(str(tmp_path / "train.pyz"))

    def test_a_folder_that_runs(self, tmp_path: Path) -> None:
        (tmp_path / "__main__.py").write_text("print(1)")
        require_script(str(tmp_path))

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("model.pt", b"\x80\x02ckpt"),
            ("train.sh", b"#!/bin/sh\npython train.py --lr 1\n"),
            ("config.yaml", b"lr: 3e-4\nmodel: {name: gpt, layers: 3}\n- x: [}"),
            ("train.py", b"\x7fELF\x00\x00"),
        ],
    )
    def test_what_was_never_meant(self, name: str, content: bytes, tmp_path: Path) -> None:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(NotPython, match="not a Python file"):
            require_script(str(tmp_path / name))

    def test_a_folder_that_does_not_run(self, tmp_path: Path) -> None:
        with pytest.raises(NotPython, match="__main__"):
            require_script(str(tmp_path))

    def test_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(ScriptNotFound, match="There is no file"):
            require_script(str(tmp_path / "train.py"))
