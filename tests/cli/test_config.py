from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.cli.main import main, parser
from hotloop.errors import UsageError


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configured(folder: Path, text: str) -> None:
    (folder / "pyproject.toml").write_text(text)


def test_settings_become_defaults_and_flags_win(project: Path) -> None:
    configured(
        project,
        """
        [tool.hotloop]
        study = "elsewhere"
        steps = 30
        [tool.hotloop.optimize]
        budget = "20m"
        skip = ["tf32", "bf16"]
        effect = "same_math"
        quiet = true
        steps = 40
        """,
    )
    found = parser(str(project)).parse_args(["optimize", "train.py"])
    assert (found.study, found.budget, found.skip) == ("elsewhere", 1200.0, "tf32,bf16")
    assert (found.effect, found.quiet, found.steps) == ("same_math", True, 40)
    flags = ["optimize", "--budget", "1m", "--effect", "lower_precision", "train.py"]
    won = parser(str(project)).parse_args(flags)
    assert (won.budget, won.effect) == (60.0, "lower_precision")
    other = parser(str(project)).parse_args(["profile", "train.py"])
    assert (other.study, other.steps) == ("elsewhere", 30)


def test_a_switch_that_is_on_can_be_turned_off(project: Path) -> None:
    configured(project, "[tool.hotloop]\nquiet = true\nno-look = true\njson = false\n")
    words = ["optimize", "--no-quiet", "--look", "train.py"]
    found = parser(str(project)).parse_args(words)
    assert (found.quiet, found.no_look) == (False, False)
    assert parser(str(project)).parse_args(["profile", "train.py"]).quiet is True
    with pytest.raises(UsageError):
        parser(str(project)).parse_args(["optimize", "--no-json", "train.py"])


def test_a_general_setting_never_changes_a_training(project: Path) -> None:
    configured(project, '[tool.hotloop]\nplan = "hotloop.json"\n')
    assert parser(str(project)).parse_args(["run", "train.py"]).plan is None
    assert parser(str(project)).parse_args(["profile", "train.py"]).plan == "hotloop.json"
    configured(project, '[tool.hotloop.run]\nplan = "hotloop.json"\n')
    assert parser(str(project)).parse_args(["run", "train.py"]).plan == "hotloop.json"


def test_a_required_option_may_be_configured(project: Path) -> None:
    configured(project, '[tool.hotloop.verify]\nplan = "hotloop.json"\n')
    assert parser(str(project)).parse_args(["verify", "train.py"]).plan == "hotloop.json"


def test_it_is_found_from_a_folder_below_but_not_above_the_repository(project: Path) -> None:
    configured(project, "[tool.hotloop]\nsteps = 7\n")
    below = project / "a" / "b"
    below.mkdir(parents=True)
    assert parser(str(below)).parse_args(["profile", "train.py"]).steps == 7
    (project / "a" / ".git").mkdir()
    assert parser(str(below)).parse_args(["profile", "train.py"]).steps is None


@pytest.mark.parametrize(
    "text", ["", "[project]\nname = 'x'", "[tool.hotloop]\n", "not toml at all"]
)
def test_without_settings_nothing_changes(project: Path, text: str) -> None:
    configured(project, text)
    found = parser(str(project)).parse_args(["optimize", "train.py"])
    assert found == parser().parse_args(["optimize", "train.py"])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[tool.hotloop]\nfly = 1", "no command has an option for 'fly'"),
        ("[tool.hotloop.fly]\nsteps = 1", "[tool.hotloop.fly] is for no command"),
        ("[tool.hotloop.report]\nsteps = 1", "hotloop report has no option for 'steps'"),
        ("[tool.hotloop]\nsteps = 'many'", "steps: 'many' is not a positive number of steps"),
        ("[tool.hotloop]\neffect = 'any'", "effect: invalid choice: 'any'"),
        ("[tool.hotloop]\nquiet = 'yes'", "quiet must be true or false"),
        ("[tool.hotloop]\nsteps =", "cannot be read"),
    ],
)
def test_what_is_wrong_is_said(
    project: Path, text: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configured(project, text)
    assert main(["levers"]) == UsageError.exit_code
    err = capsys.readouterr().err
    assert says in err and "pyproject.toml" in err and err.count("\n") == 1
