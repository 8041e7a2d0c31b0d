from __future__ import annotations

import os
from pathlib import Path

import pytest

from hotloop.trial.terminal import Terminal, harmless


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("plain ö × µ\n\tindented", "plain ö × µ\n\tindented"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[H\x1b[?25lhidden", "hidden"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\sixel", "sixel"),
        ("\x1b]52;c;c2VjcmV0", ""),
        ("\x1bc\x1b7reset", "reset"),
        ("50%\r100%\r\ndone\r\n", "50%100%\ndone\n"),
        ("a\x08\x00\x7f\x9b31mb", "a31mb"),
        ("cut\x1b", "cut"),
        ("cut\x1b[", "cut"),
        ("[red]markup[/red]", "[red]markup[/red]"),
        ("train\u202eyp.exe\u2066\ufeff", "trainyp.exe"),
        (os.fsdecode(b"caf\xe9"), "caf?"),
    ],
)
def test_nothing_harmless_is_lost_and_nothing_else_is_left(text: str, left: str) -> None:
    assert harmless(text) == left


class TestTerminal:
    def test_is_one_to_the_child(self, tmp_path: Path) -> None:
        with Terminal(tmp_path / "log") as terminal:
            assert os.isatty(terminal.childs)
            assert os.get_terminal_size(terminal.childs).columns > 0
            terminal.hand_over()

    def test_what_is_printed_is_read_and_kept(self, tmp_path: Path) -> None:
        with Terminal(tmp_path / "log") as terminal:
            os.write(terminal.childs, b"one\n")
            printed = b""
            while not printed.endswith(b"\n"):  # it may come in pieces
                printed += terminal.read(5.0)
            assert printed == b"one\r\n"
            terminal.hand_over()
        assert (tmp_path / "log").read_bytes() == b"one\n"

    def test_an_end_of_line_that_comes_in_pieces(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pieces = [b"one\r", b"\ntwo\r", b"three\r"]
        with Terminal(tmp_path / "log") as terminal:
            terminal.hand_over()
            monkeypatch.setattr(os, "read", lambda *_: pieces.pop(0) if pieces else b"")
        assert (tmp_path / "log").read_bytes() == b"one\ntwo\rthree\r"

    def test_what_was_left_unread_is_kept_too(self, tmp_path: Path) -> None:
        with Terminal(tmp_path / "log") as terminal:
            os.write(terminal.childs, b"last words\n")
            terminal.hand_over()
        assert (tmp_path / "log").read_bytes() == b"last words\n"

    def test_silence_is_not_the_end(self, tmp_path: Path) -> None:
        with Terminal(tmp_path / "log") as terminal:
            assert terminal.read(0) == b""
            assert terminal.is_open
            terminal.hand_over()
            while terminal.read(5.0):
                pass
            assert not terminal.is_open
            assert terminal.read(5.0) == b""
