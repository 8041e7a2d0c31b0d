"""`--resume`: the study that is meant, and the command that goes on with it."""

from __future__ import annotations

import argparse
import math
import os

from hotloop.cli import common

TYPE_CHECKING = False  # see main
if TYPE_CHECKING:
    from pathlib import Path

    from hotloop.job import ScriptJob
    from hotloop.study import Study

FLAGS = (
    "--dry-run",
    "--no-look",
    "--thorough",
    "--quiet",
    "--json",
    "--verbose",
    "--show-output",
)
"""Our options that take no value; none of one letter does, but the one that ends them."""
MODULE = "-m"


def spelled_out(words: list[str]) -> list[str]:
    """`--resume` takes the next word only where that is a study: it may well be the script."""
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] not in ("--", MODULE):
        if words[at] == "--resume":
            follows = words[at + 1 : at + 2]
            named = follows if follows and _may_be_study(follows[0]) else []
            words = [*words[:at], f"--resume={''.join(named)}", *words[at + 1 + len(named) :]]
        takes_next = words[at].startswith("--") and "=" not in words[at] and not _is_flag(words[at])
        at += 2 if takes_next else 1
    return words


def _is_flag(word: str) -> bool:
    """Also the opposite of one, which turns off what a configuration has turned on."""
    return word in FLAGS or word == "--look" or word.startswith("--no-")


def _may_be_study(word: str) -> bool:
    """Not a script, nor an option. A folder that is not there is a study that is missed."""
    is_program = os.path.isfile(word) or os.path.exists(os.path.join(word, "__main__.py"))
    return not (is_program or word.startswith("-") or word.endswith(".py"))


def folder_of(named: str | None) -> Path | None:
    """None where none is named: the newest is meant, or nothing is to be resumed."""
    from pathlib import Path

    from hotloop.errors import UsageError

    if not named:
        return None
    folder = Path(named).absolute()
    if not (folder / "study.json").is_file():
        raise UsageError(
            f"There is no study in {named}.", "Name its folder, or --resume the newest one."
        )
    return folder


def with_more_time(
    arguments: argparse.Namespace, job: ScriptJob, folder: Path, record: Study
) -> list[tuple[str, str]]:
    """What for, and the command; nothing where the budget did for everything."""
    from hotloop.optimization import OUT_OF_TIME
    from hotloop.workshop.choosing import BLIND
    from hotloop.workshop.outlook import outlook

    found = record.found
    unproven = found is not None and found.verdict == OUT_OF_TIME
    untried = found is not None and found.climb is not None and found.climb.untried
    hopeless = found is not None and found.verdict == BLIND
    if arguments.budget is None or hopeless or not (unproven or untried):
        return []
    # What was spent is part of it: trials that have run are not run again. To examine another plan
    # takes a new reference where the weights are gone: that is part of what a proof takes.
    enough = 2 * arguments.budget
    if found is not None and unproven:
        proof = outlook(found.candidates, record.trials[0].seconds).to_prove
        enough = max(enough, math.ceil((arguments.budget + proof) / 30) * 30)
    longer = argparse.Namespace(**{**vars(arguments), "budget": enough})
    why = "to go on" if unproven else "to try what there was no time for"
    return [(why, command(longer, job, folder))]


def command(arguments: argparse.Namespace, job: ScriptJob, folder: Path) -> str:
    """The command that goes on where this one stopped, with the same options."""
    import shlex

    told = {
        "--budget": f"{arguments.budget:g}s" if arguments.budget else "",
        "--steps": str(arguments.steps or ""),
        "--only": arguments.only,
        "--skip": arguments.skip,
        "--effect": arguments.effect if arguments.effect != "lower_precision" else "",
        "--objective": arguments.objective if arguments.objective != "speed" else "",
        "--plan-out": arguments.plan_out if arguments.plan_out != "hotloop.json" else "",
        "--timeout": f"{arguments.timeout:g}s" if arguments.timeout != 600.0 else "",
        "--python": arguments.python or "",
    }
    given = [word for option, value in told.items() if value for word in (option, value)]
    flags = ["--no-look"] if arguments.no_look else []
    flags += ["--thorough"] if arguments.thorough else []
    words = ["hotloop", "optimize", "--resume", common.short(folder), *given, *flags]
    return shlex.join([*words, *job.words])
