from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotloop.errors import UsageError
from hotloop.trial import given
from hotloop.trial.given import Given, Kept


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The end at which somebody writes what hotloop is given."""
    reading, writing = os.pipe()
    kept: list[Kept] = []

    def once() -> Kept:
        kept.append(kept[0] if kept else Kept(reading, most=200_000))
        return kept[0]

    monkeypatch.setattr(given, "_source", once)
    yield writing
    os.close(writing)


def start(one: Given, code: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", f"import sys; {code}"]
    process = subprocess.Popen(words, stdin=one.childs, stdout=subprocess.PIPE)
    one.hand_over()
    return process


def read_by_a_trial(code: str = "print(sys.stdin.read())") -> bytes:
    with Given(-1) as one:
        return start(one, code).communicate(timeout=30)[0].strip()


def test_every_trial_reads_all_of_it_from_its_start(
    stdin: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = b"exp1\n" * 30_000  # more than a pipe holds
    replaced = os.dup(stdin)
    with Given(-1) as one:
        process = start(one, "print(len(sys.stdin.read()))")
        os.write(replaced, text[:65_000])
        for begin in range(65_000, len(text), 5_000):
            os.write(replaced, text[begin : begin + 5_000])
        # Nobody holds it open any more.
        os.close(replaced)
        os.dup2(os.open(os.devnull, os.O_WRONLY), stdin)
        assert process.communicate(timeout=30)[0].strip() == b"150000"
    assert read_by_a_trial("print(len(sys.stdin.read()))") == b"150000"
    assert read_by_a_trial("print(sys.stdin.readline().strip())") == b"exp1"


def test_a_pipe_that_nobody_closes_stops_nobody(stdin: int) -> None:
    began = time.monotonic()
    assert read_by_a_trial("print('trained')") == b"trained"
    assert time.monotonic() - began < 20
    os.write(stdin, b"so far\n")
    assert read_by_a_trial("print(sys.stdin.readline().strip())") == b"so far"


def test_more_than_is_kept_is_said_once_it_is_read(stdin: int) -> None:
    with Given(-1) as one:
        process = start(one, "sys.stdin.read(); print('all')")
        for _ in range(6):
            os.write(stdin, b"x" * 40_000)
        with pytest.raises(UsageError, match="reads more than"):
            for _ in range(200):
                one.look()
                time.sleep(0.05)
        process.kill()  # to it that was not the end
        assert process.communicate()[0] == b""


def test_a_file_is_opened_anew_from_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("one\ntwo\n")
    code = (
        "import os; from hotloop.trial.given import Given\nos.read(0, 4)\n"
        "for _ in range(2):\n    with Given(-1) as one: print(os.read(one.childs, 100))\n"
        "print(os.read(0, 100))"
    )
    with (tmp_path / "lines").open() as file:
        done = subprocess.run([sys.executable, "-c", code], stdin=file, capture_output=True)
    assert done.stdout.decode().split() == ["b'two\\n'"] * 3, done.stderr


@pytest.mark.parametrize("closed", [True, False])
def test_nothing_is_the_end_at_once(closed: bool) -> None:
    code = "import os; from hotloop.trial.given import Given; print(os.read(Given(-1).childs, 9))"
    words = [sys.executable, "-c", code]
    shell = ["sh", "-c", '"$@" <&-', "sh", *words] if closed else words
    done = subprocess.run(shell, stdin=subprocess.DEVNULL, capture_output=True, timeout=30)
    assert done.stdout.strip() == b"b''", done.stderr


def test_a_terminal_stays_with_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, childs = os.openpty()
    monkeypatch.setattr(given, "_source", lambda: None)
    with Given(childs) as one:
        assert one.is_terminal and os.isatty(one.childs)
        assert os.ttyname(one.childs) == os.ttyname(childs)
    os.close(ours)
    os.close(childs)
