"""What hotloop can be asked for. The list is here, so that only what is asked for is imported."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from types import ModuleType

SUMMARIES = {
    "optimize": "find what makes a script faster, and prove it",
    "run": "run a script, exactly as python would, under a plan if one is given",
    "verify": "check whether a plan leaves the training as it is",
    "profile": "measure a script: how fast it is, where each step's time goes and what limits it",
    "report": "make the report of a study: a page, Markdown, or the data",
    "compare": "compare two studies: did a change make the job slower",
    "experiment": "run one of the well-known comparisons on this machine",
    "levers": "list and explain the optimisations hotloop knows",
    "doctor": "check the machine: what it can do, and what spoils measurements on it",
    "completion": "print a script that completes commands and options in your shell",
}
"""Of each command, in the order in which they are shown."""


def module(name: str) -> ModuleType:
    """Says how the command is used, and does it."""
    return import_module(f"hotloop.cli.{name}")
