"""The commands that make a study again, and that apply what it found."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict

from hotloop.job import ScriptJob
from hotloop.plan import Plan
from hotloop.study import Options, Study

LONGER = 1000
"""Steps that `verify` is proposed with: many more than a search looks at."""


def job_words(job: ScriptJob) -> str:
    """As a shell would read them, without the interpreter."""
    return shlex.join(job.words)


def to_reproduce(study: Study) -> list[tuple[str, str]]:
    """What to do, and the command."""
    job = study.job
    options = _options(study.found.options) if study.found else []
    words = shlex.join(["hotloop", study.command, *options, "--python", job.python])
    return [
        ("from this folder", f"cd {shlex.quote(job.cwd)}"),
        ("make this study again", f"{words} {job_words(job)}"),
    ]


def to_apply(words: str, plan_file: str, comparable: bool = True) -> list[tuple[str, str]]:
    """`words`: which name the job. `comparable`: whether it runs without the plan, too."""
    plan = shlex.quote(plan_file)
    longer = f"hotloop verify --plan {plan} --steps {LONGER} {words}"
    look = [("check over more steps that it trains the same", longer)] if comparable else []
    return [("train under the plan", f"hotloop run --plan {plan} {words}"), *look]


def plan_text(plan: Plan) -> str:
    """As it is written to hotloop.json."""
    return json.dumps(asdict(plan), indent=2)


def _options(options: Options) -> list[str]:
    told = {
        "--budget": f"{options.budget:g}s" if options.budget else "",
        "--steps": str(options.steps or ""),
        "--only": ",".join(options.only),
        "--skip": ",".join(options.skip),
        "--effect": options.effect if options.effect != Options().effect else "",
        "--objective": options.objective if options.objective != Options().objective else "",
    }
    words = [word for option, value in told.items() if value for word in (option, value)]
    return words if options.look else [*words, "--no-look"]
