from __future__ import annotations

import argparse

import pytest

from hotloop.cli import commands
from hotloop.cli.helping import Formatter
from hotloop.cli.main import main

WIDTH = 80


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(WIDTH))


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    with pytest.raises(SystemExit):
        main([*words, "--help"])
    return capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("command", commands.SUMMARIES)
def test_no_sentence_is_wider_than_the_terminal(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for line in shown(capsys, command):
        is_to_be_copied = line.startswith("  ") and " > " in line
        assert len(line) <= WIDTH or is_to_be_copied, line


def test_every_command_stands_beside_what_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    begins = [line.split() for line in shown(capsys) if line.startswith("    ")]
    told = {words[0]: len(words) for words in begins if words[0] in commands.SUMMARIES}
    assert set(told) == set(commands.SUMMARIES) and min(told.values()) > 1


def test_what_takes_all_that_follows_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert any("-m MODULE [ARGS…]  " in line for line in shown(capsys, "optimize"))


def test_what_is_indented_stays_as_it_is() -> None:
    command = f"  copy {'this ' * 30}"
    parser = argparse.ArgumentParser(
        description=f"{'many words ' * 20}\n\n{command}\n", formatter_class=Formatter
    )
    lines = parser.format_help().splitlines()
    assert command.rstrip() in [line.rstrip() for line in lines]
    assert all(len(line) <= WIDTH for line in lines if "many words" in line)
