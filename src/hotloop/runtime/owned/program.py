"""The program that trains a job: what `hotloop run jobs.py:MyJob` becomes, and each trial of it."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

from hotloop.errors import JobInvalid
from hotloop.runtime import child, tracebacks
from hotloop.runtime.owned import reference
from hotloop.runtime.owned.loop import Epoch, Loop


def main(words: list[str]) -> int:
    is_module = words[0] == "-m"
    named, *settings = words[1:] if is_module else words
    target, _, entry = named.rpartition(":")
    sys.argv = [named, *settings]
    _stand_on_path(os.getcwd() if is_module else os.path.dirname(os.path.abspath(target)))
    if not child.is_trial():
        tracebacks.install(lambda kind, error: None)
    try:
        job = reference.load(target, entry, is_module, settings)
        import torch

        Loop(torch, job).train(tell)
    except JobInvalid as error:
        return _explain(error)
    return 0


def _stand_on_path(folder: str) -> None:
    """Where Python has put our own folder, being that of the program it started."""
    if sys.path and os.path.abspath(sys.path[0]) == os.path.dirname(os.path.abspath(__file__)):
        sys.path[0] = folder


def tell(epoch: Epoch) -> None:
    parts = [
        f"epoch {epoch.number}",
        f"{epoch.steps} steps",
        f"{epoch.seconds:.3g} s",
        f"loss {epoch.loss:.6g}",
        *evaluation_words(epoch.evaluation),
    ]
    sys.stdout.write("  ".join(parts) + "\n")
    sys.stdout.flush()


def evaluation_words(found: Any) -> list[str]:
    if found is None:
        return []
    if isinstance(found, dict):
        return [f"{name} {_number(value)}" for name, value in found.items()]
    return [f"evaluation {_number(found)}"]


def _number(value: Any) -> str:
    try:
        return f"{float(value):.6g}"
    except (TypeError, ValueError):
        return str(value)


def _explain(error: JobInvalid) -> int:
    child.note(error)
    if error.__cause__ is not None:
        tracebacks.clean(error.__cause__)
        traceback.print_exception(error.__cause__)
    if not child.is_trial():  # whose launcher says it
        sys.stderr.write(f"hotloop: {error.sentence} {error.remedy}\n")
    return error.exit_code
