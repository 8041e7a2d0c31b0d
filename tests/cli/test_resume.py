from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.cli import resume
from hotloop.cli.main import parser


@pytest.mark.parametrize(
    ("words", "spelled_out"),
    [
        ("--resume train.py --resume x", "--resume= train.py --resume x"),
        ("--resume gone.py", "--resume= gone.py"),
        ("--resume study train.py", "--resume=study train.py"),
        ("--resume app x", "--resume= app x"),
        ("--resume -m train", "--resume= -m train"),
        ("--resume --json train.py", "--resume= --json train.py"),
        ("--resume", "--resume="),
        ("--resume=study train.py", "--resume=study train.py"),
        ("--json --resume train.py", "--json --resume= train.py"),
        ("--no-quiet --look --resume train.py", "--no-quiet --look --resume= train.py"),
        ("-q --resume train.py", "-q --resume= train.py"),
        ("-qv --resume study train.py", "-qv --resume=study train.py"),
        ("--steps 3 --resume train.py", "--steps 3 --resume= train.py"),
        ("--study --resume train.py --resume x", "--study --resume train.py --resume x"),
        ("train.py --resume x", "train.py --resume x"),
        ("-m train --resume x", "-m train --resume x"),
        ("-- train.py --resume x", "-- train.py --resume x"),
    ],
)
def test_the_script_is_not_taken_for_a_study(
    words: str, spelled_out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__main__.py").touch()
    assert resume.spelled_out(words.split()) == spelled_out.split()


def test_flags_are_all_known_to_take_no_value() -> None:
    commands = parser()._subparsers
    assert commands is not None
    chosen = commands._group_actions[0].choices
    assert isinstance(chosen, dict)
    actions = chosen["optimize"]._actions
    flags = {name for action in actions if action.nargs == 0 for name in action.option_strings}
    assert {name for name in flags if name.startswith("--")} == {*resume.FLAGS, "--help"}
    letters = {name for action in actions for name in action.option_strings if name[1] != "-"}
    assert letters - flags == {resume.MODULE}
