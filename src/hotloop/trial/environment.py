"""The environment a trial's process starts with: the user's own, and a few things more."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from hotloop.trial.reaping import MARK

# A trial is no experiment of the user's: nothing of it belongs on their dashboards.
TRACKERS_OFF = {
    "WANDB_MODE": "disabled",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "MLFLOW_TRACKING_URI": "file:mlruns",
    "SWANLAB_MODE": "disabled",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}

# Threads that wait by spinning keep the cores from whatever else runs: two processes, each with a
# thread a core, may take twenty times as long for a sum.
PATIENT = {"OMP_WAIT_POLICY": "PASSIVE"}


def users_environment() -> dict[str, str]:
    """What we were started with.

    In the C locale, the usual one of a container, Python sets LC_CTYPE for its children (PEP 538).
    A script that finds it there runs without the UTF-8 mode that it would have had.
    """
    environment = dict(os.environ)
    if sys.flags.utf8_mode and "PYTHONUTF8" not in environment:
        environment.pop("LC_CTYPE", None)
    return environment


def child_environment(
    spec: Path,
    mark: str,
    caches: Path,
    compiles_source: bool = False,
    beside_others: bool = False,
) -> dict[str, str]:
    """Of a trial. `compiles_source`: at every start, since its bytecode is kept nowhere."""
    environment = {**let_in(spec), **TRACKERS_OFF, MARK: mark}
    if compiles_source and "PYTHONPYCACHEPREFIX" not in environment:
        environment["PYTHONPYCACHEPREFIX"] = str(caches / "bytecode")
        # Whoever does not want it beside their source has it elsewhere.
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
    # Compiled once, used by every trial of the study.
    environment.setdefault("TORCHINDUCTOR_CACHE_DIR", str(caches / "inductor"))
    environment.setdefault("TRITON_CACHE_DIR", str(caches / "triton"))
    return {**environment, **PATIENT} if beside_others else environment


def let_in(spec: Path) -> dict[str, str]:
    """Our folder goes first on PYTHONPATH, where Python looks for what to run before the script."""
    environment = users_environment()
    ours = str(Path(__file__).parents[1] / "runtime" / "site")
    before = environment.get("PYTHONPATH")
    if before is not None:
        environment["HOTLOOP_PYTHONPATH"] = before
    environment["PYTHONPATH"] = ours + os.pathsep + before if before else ours
    environment["HOTLOOP_SPEC"] = str(spec)
    return environment
