"""What to run, in the user's own interpreter: a script or a module with its arguments, or a class
that describes a job."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

LOOP = Path(__file__).with_name("runtime") / "owned" / "main.py"


@dataclass(frozen=True)
class ScriptJob:
    target: str
    """A path as the user typed it, or a module's dotted name."""
    is_module: bool
    args: tuple[str, ...]
    python: str
    cwd: str
    entry: str = ""
    """The class in it that describes the job, whose loop is then ours. Empty: it is a script."""

    def argv(self) -> list[str]:
        """The command the user would have typed: `sys.argv` and `__main__` are their own.

        For a class there is none, and it is our loop that Python starts.
        """
        ours = [str(LOOP)] if self.entry else []
        return [self.python, *ours, *self.words]

    @property
    def command(self) -> list[str]:
        """How the user would run it without an optimisation."""
        return ["hotloop", "run", *self.words] if self.entry else self.argv()

    @property
    def words(self) -> list[str]:
        """What names the job on a command line."""
        return [*(["-m"] if self.is_module else []), self.shown, *self.args]

    @property
    def shown(self) -> str:
        return f"{self.target}:{self.entry}" if self.entry else self.target

    @property
    def name(self) -> str:
        file = self.target.rpartition(".")[2] if self.is_module else Path(self.target).stem
        return f"{file}-{self.entry}" if self.entry else file

    def source_digest(self) -> str:
        """Tells the script from another, whatever its arguments. Empty for a module."""
        path = Path(self.cwd, self.target)
        if self.is_module or not path.is_file():
            return ""
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]

    def digest(self) -> str:
        """Tells this job from another: its source where there is one file, and its arguments."""
        text = hashlib.sha256(os.fsencode(self.shown))
        path = Path(self.cwd, self.target)
        if not self.is_module and path.is_file():
            text.update(path.read_bytes())
        text.update(os.fsencode("\0".join(self.args)))
        return text.hexdigest()[:16]
