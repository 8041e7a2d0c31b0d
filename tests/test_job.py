from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.builders import job


def test_the_command_is_what_the_user_would_have_typed() -> None:
    assert job().argv() == ["/usr/bin/python3", "train.py", "--lr", "3e-4"]
    assert job(target="pkg.train", is_module=True).argv() == [
        "/usr/bin/python3",
        "-m",
        "pkg.train",
        "--lr",
        "3e-4",
    ]


@pytest.mark.parametrize(
    ("target", "is_module", "name"),
    [
        ("train.py", False, "train"),
        ("examples/gan/train.v2.py", False, "train.v2"),
        ("train", True, "train"),
        ("pkg.sub.train", True, "train"),
    ],
)
def test_its_name_is_short(target: str, is_module: bool, name: str) -> None:
    assert job(target=target, is_module=is_module).name == name


class TestAClassThatDescribesAJob:
    described = job(target="jobs.py", args=("hidden=8",), entry="Mine")

    def test_python_starts_our_loop(self) -> None:
        python, loop, *words = self.described.argv()
        assert (python, words) == ("/usr/bin/python3", ["jobs.py:Mine", "hidden=8"])
        assert Path(loop).is_file() and Path(loop).name == "main.py"

    def test_in_a_module(self) -> None:
        found = job(target="pkg.jobs", is_module=True, args=(), entry="Mine")
        assert found.argv()[2:] == ["-m", "pkg.jobs:Mine"]
        assert found.name == "jobs-Mine"

    def test_is_shown_as_it_was_typed(self) -> None:
        assert self.described.command == ["hotloop", "run", "jobs.py:Mine", "hidden=8"]
        assert self.described.shown == "jobs.py:Mine"
        assert self.described.name == "jobs-Mine"

    def test_is_another_job_than_its_neighbour(self) -> None:
        other = job(target="jobs.py", args=("hidden=8",), entry="Other")
        assert other.digest() != self.described.digest()


class TestDigest:
    def test_is_the_same_for_the_same_job(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text("one")
        assert job(tmp_path).digest() == job(tmp_path).digest()
        assert job(tmp_path).digest() == job(tmp_path, python="/other/python").digest()

    def test_tells_sources_apart(self, tmp_path: Path) -> None:
        (tmp_path / "train.py").write_text("one")
        before = job(tmp_path).digest()
        (tmp_path / "train.py").write_text("two")
        assert job(tmp_path).digest() != before

    def test_tells_arguments_apart(self, tmp_path: Path) -> None:
        digests = {
            job(tmp_path, args=args).digest() for args in [(), ("a",), ("a", "b"), ("ab",), ("b",)]
        }
        assert len(digests) == 5

    def test_names_and_arguments_need_not_be_text(self) -> None:
        odd = os.fsdecode(b"caf\xe9.py")
        assert job(target=odd, args=(odd,)).digest() != job(target="cafe.py", args=()).digest()

    def test_tells_scripts_apart_even_where_there_is_no_file(self) -> None:
        assert job(target="a", is_module=True).digest() != job(target="b", is_module=True).digest()
        assert job(target="gone.py").digest() != job(target="lost.py").digest()
