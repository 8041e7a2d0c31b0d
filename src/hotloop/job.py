"""What to run: a script or a module, with its arguments, in the user's own interpreter."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ScriptJob:
    target: str
    """A path as the user typed it, or a module's dotted name."""
    is_module: bool
    args: tuple[str, ...]
    python: str
    cwd: str

    def argv(self) -> list[str]:
        """The command the user would have typed: `sys.argv` and `__main__` are their own."""
        target = ["-m", self.target] if self.is_module else [self.target]
        return [self.python, *target, *self.args]

    @property
    def name(self) -> str:
        return self.target.rpartition(".")[2] if self.is_module else Path(self.target).stem

    def source_digest(self) -> str:
        """Tells the script from another, whatever its arguments. Empty for a module."""
        path = Path(self.cwd, self.target)
        if self.is_module or not path.is_file():
            return ""
        return hashlib.sha256(path.read_bytes()).hexdigest()[:16]

    def digest(self) -> str:
        """Tells this job from another: its source where there is one file, and its arguments."""
        text = hashlib.sha256(os.fsencode(self.target))
        path = Path(self.cwd, self.target)
        if not self.is_module and path.is_file():
            text.update(path.read_bytes())
        text.update(os.fsencode("\0".join(self.args)))
        return text.hexdigest()[:16]
