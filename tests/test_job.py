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
