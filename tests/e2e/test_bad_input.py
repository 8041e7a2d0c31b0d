"""What is refused before anything of the user's runs, and how."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from .conftest import Desk

pytestmark = pytest.mark.e2e

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "Which script?"),
        (["--no-such-option", "train.py"], "--no-such-option"),
        (["--steps", "0", "train.py"], "'0' is not a positive number of steps"),
        (["--steps", "-3", "train.py"], "--steps"),
        (["--steps", "many", "train.py"], "'many' is not a positive number of steps"),
        (["--timeout", "x", "train.py"], "'x' is not a time"),
        (["--timeout", "0s", "train.py"], "'0s' is not a time"),
        (["--timeout", "nan", "train.py"], "'nan' is not a time"),
        (["-m"], "Which script?"),
    ],
)
def test_usage(desk: Desk, words: list[str], says: str) -> None:
    desk.write("raise SystemExit('must not run')")
    ended = desk.profile(*words)
    ended.expect(80, says, remedy="hotloop profile")
    assert not (desk.project / ".hotloop").exists()


def test_unknown_command(desk: Desk) -> None:
    desk.hotloop("frobnicate").expect(80, "'frobnicate'", remedy="hotloop --help")


def test_options_of_the_script_are_not_ours(desk: Desk) -> None:
    desk.write("import sys; print(sys.argv[1:])")
    words = ["--steps", "0", "--help", "--version", "-m", "x", "--", "--plan", "", "a b"]
    assert desk.hotloop("run", "train.py", *words).out == f"{words}\n"


@pytest.mark.parametrize("command", ["profile", "run"])
def test_no_such_file(desk: Desk, command: str) -> None:
    before = desk.files()
    ended = desk.hotloop(command, "absent.py")
    ended.expect(81, "There is no file absent.py.", remedy=str(desk.project))
    desk.expect_clean(before)
    assert ended.out == ""
    assert not (desk.project / ".hotloop").exists()


@pytest.mark.parametrize("command", ["profile", "run"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("cat.png", PNG),
        ("cat.py", PNG),
        ("notes.txt", b"Dear diary, today the loss went down.\n"),
        ("folder/readme", b""),
    ],
)
def test_not_python(desk: Desk, command: str, name: str, content: bytes) -> None:
    target = desk.write(content, name).partition("/")[0]
    before = desk.files()
    desk.hotloop(command, target).expect(82, target, remedy="the script")
    desk.expect_clean(before)


@pytest.mark.parametrize("command", ["profile", "run"])
def test_no_such_interpreter(desk: Desk, command: str) -> None:
    desk.write("print('must not run')")
    ended = desk.hotloop(command, "--python", "no/such/python", "train.py")
    ended.expect(83, "There is no Python interpreter no/such/python.", remedy="--python")
    assert ended.out == ""


def test_an_interpreter_that_is_none(desk: Desk) -> None:
    desk.write("print('must not run')")
    fake = desk.base / "python"
    fake.write_bytes(PNG)
    fake.chmod(0o755)
    ended = desk.profile("--python", str(fake), "train.py")
    ended.expect(83, "does not run as a Python interpreter", remedy="--python")


def test_no_torch_in_the_interpreter(desk: Desk) -> None:
    desk.write("import torch")
    desk.python("-m", "venv", "--without-pip", str(desk.base / "bare"))
    python = desk.base / "bare" / "bin" / "python"
    ended = desk.profile("--python", str(python), "train.py")
    ended.expect(84, f"There is no torch in {python}.", remedy="--python")


def test_the_active_environment_is_asked_first(desk: Desk) -> None:
    desk.write("import torch")
    desk.python("-m", "venv", "--without-pip", str(desk.base / "bare"))
    ended = desk.profile("train.py", env={"VIRTUAL_ENV": str(desk.base / "bare")})
    ended.expect(84, f"There is no torch in {desk.base / 'bare'}", remedy="--python")


@pytest.mark.parametrize("name", ["no.such.module", "nosuchmodule", "json.nosuch"])
def test_no_such_module(desk: Desk, name: str) -> None:
    ended = desk.profile("-m", name)
    ended.expect(81, f"There is no module {name}", remedy="Check its name")


@pytest.mark.parametrize("study", ["train.py/study", "/proc/hotloop"])
def test_study_cannot_be_kept_there(desk: Desk, study: str) -> None:
    desk.write("print('must not run')")
    ended = desk.profile("--study", study, "train.py")
    ended.expect(94, "No study can be kept in", remedy="--study")


@pytest.mark.parametrize(
    ("words", "code"),
    [(["absent.py"], 81), (["--python", "absent", "train.py"], 83), (["quick.py"], 89)],
)
def test_json_has_the_error_too(desk: Desk, words: list[str], code: int) -> None:
    desk.write("")
    desk.write("", "quick.py")
    ended = desk.profile("--json", *words)
    error = json.loads(ended.out)["error"]
    assert error["code"] == ended.code == code
    assert ended.sentence == f"hotloop: {error['sentence']} {error['remedy']}"


def test_a_reader_who_leaves_early(desk: Desk) -> None:
    """`hotloop --help | head -0`."""
    command = f"{Path(sys.executable).with_name('hotloop')} --help | true"
    ended = desk.call(["bash", "-o", "pipefail", "-c", command])
    assert ended.code in (0, 141)
    assert "Traceback" not in ended.err
