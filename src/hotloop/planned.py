"""`hotloop run --plan`: what the parent does before the script takes over its process."""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import asdict
from pathlib import Path

from hotloop import codec, machine, plan
from hotloop.job import ScriptJob
from hotloop.plan import Plan
from hotloop.trial.environment import let_in
from hotloop.trial.spec import RunSpec

_VERSION = "import importlib.metadata as m; print(m.version('torch'))"


def environment(chosen: Plan, keep_going: bool) -> dict[str, str]:
    """The user's own, and what lets the plan into the script's process."""
    levers = tuple(asdict(lever) for lever in chosen.levers)
    handle, path = tempfile.mkstemp(prefix="hotloop-", suffix=".json")  # the child removes it
    os.close(handle)
    codec.write(Path(path), RunSpec(levers, keep_going, chosen.at_once))
    return {**let_in(Path(path)), **chosen.environment()}


def require_fit(chosen: Plan, job: ScriptJob) -> None:
    """Refuses a plan that was made for something else, as far as the plan says."""
    gpus = machine.describe().gpus if chosen.gpu else ()
    torch = _torch_version(job.python) if chosen.torch else ""
    plan.require_same(chosen, job.source_digest(), torch, gpus[0].name if gpus else "")


def _torch_version(python: str) -> str:
    outcome = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, check=False)
    return outcome.stdout.strip()
