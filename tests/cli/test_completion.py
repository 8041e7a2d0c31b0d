from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hotloop.cli import commands
from hotloop.cli.completion import SHELLS
from hotloop.cli.main import main

READS = {
    "bash": ["bash", "-n"],
    "zsh": ["zsh", "-n"],
    "fish": ["fish", "--no-execute"],
}


@pytest.fixture
def script(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    made = {}
    for shell in SHELLS:
        assert main(["completion", shell]) == 0
        made[shell] = capsys.readouterr().out
    return made


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_can_read_it(script: dict[str, str], shell: str, tmp_path: Path) -> None:
    assert all(name in script[shell] for name in commands.SUMMARIES)
    assert "budget" in script[shell]
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    file = tmp_path / "completion"
    file.write_text(script[shell])
    done = subprocess.run([*READS[shell], str(file)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("op", ["optimize"]),
        ("optimize --bud", ["--budget"]),
        ("optimize --effect s", ["same_math"]),
        ("compare --th", ["--threshold"]),
        ("completion z", ["zsh"]),
        ("optimize tra", []),  # files, which the shell knows itself
    ],
)
def test_bash_completes(script: dict[str, str], typed: str, offered: list[str]) -> None:
    words = ["hotloop", *typed.split(" ")]
    quoted = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _hotloop; echo ${{COMPREPLY[@]}}"
    done = subprocess.run(
        ["bash", "-c", f"{script['bash']}\n{ask}"], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == offered
