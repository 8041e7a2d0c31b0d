"""Where the plan is written: never over a file that is not a plan of ours."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

from hotloop import plan
from hotloop.errors import PlanError, StudyNotWritable
from hotloop.plan import Plan

PREVIOUS = "previous-hotloop.json"


def write(chosen: Plan, wanted: Path, folder: Path) -> tuple[Path, str]:
    """The file it was written to, and a sentence when that is not the one that was wanted."""
    problem = ""
    if wanted.exists() or wanted.is_symlink():
        problem = "" if is_plan(wanted) else f"{wanted} is not a plan of hotloop's, and was left"
    if not problem:
        try:
            if wanted.exists():
                shutil.copyfile(wanted, folder / PREVIOUS)
            plan.save(chosen, wanted)
            return wanted, ""
        except OSError as error:
            problem = f"{wanted} could not be written ({error.strerror})"
    instead = folder / "hotloop.json"
    try:
        plan.save(chosen, instead)
    except OSError as error:
        raise StudyNotWritable(
            f"The plan could be written neither to {wanted} nor to {instead}: {error.strerror}.",
            "Free some space. The study holds the plan: --resume writes it.",
        ) from None
    return instead, f"{problem}: the plan is in the study."


def is_plan(path: Path) -> bool:
    """Many a JSON file has a "version": a plan also lists what it applies."""
    with contextlib.suppress(PlanError, ValueError):
        plan.load(path)
        return "levers" in json.loads(path.read_text(encoding="utf-8"))
    return False
