"""A plan: which optimisations to apply to a job, with their settings, in order.

`hotloop.json` is meant to be read and kept under version control by its user.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from hotloop.errors import PlanError
from hotloop.levers.registry import LEVERS

VERSION = 1


@dataclass(frozen=True)
class LeverSetting:
    lever: str
    setting: dict[str, Any]


@dataclass(frozen=True)
class Plan:
    levers: tuple[LeverSetting, ...] = ()
    script: str = ""
    """The digest of the script it was made for. Empty: for any."""
    torch: str = ""
    gpu: str = ""
    at_once: bool = False
    """Models are found at their first call, and not after a step: the job has no memory for one."""
    version: int = VERSION

    @property
    def is_empty(self) -> bool:
        return not self.levers

    def environment(self) -> dict[str, str]:
        """What its optimisations want set before the process starts."""
        variables: dict[str, str] = {}
        for chosen in self.levers:
            variables |= LEVERS[chosen.lever](**chosen.setting).environment()
        return variables


def load(path: Path) -> Plan:
    """Reads a plan, and refuses what it cannot apply exactly as written."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise PlanError(f"There is no plan file {path}.", "Check the path after --plan.") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise PlanError(
            f"{path} is not a plan: it cannot be read as JSON ({error}).",
            "Give the hotloop.json that hotloop wrote.",
        ) from None
    return _validated(document, path)


def save(plan: Plan, path: Path) -> None:
    path.write_text(json.dumps(asdict(plan), indent=2) + "\n", encoding="utf-8")


def require_same(plan: Plan, script: str, torch: str, gpu: str) -> None:
    """A plan was proven on one script, torch and GPU; elsewhere it is a guess."""
    builds = [version.partition("+")[0] for version in (plan.torch, torch)]
    pairs = (("script", plan.script, script), ("torch", *builds), ("GPU", plan.gpu, gpu))
    for what, then, now in pairs:
        if then and now and then != now:
            raise PlanError(
                f"The plan was made for another {what} ({then}, here {now}).",
                "Make a new plan, or apply it all the same with --anyway.",
            )


def _validated(document: Any, path: Path) -> Plan:
    if not isinstance(document, dict) or not isinstance(document.get("version"), int):
        raise PlanError(
            f'{path} is not a plan: it has no "version".',
            "Give the hotloop.json that hotloop wrote.",
        )
    if document["version"] > VERSION:
        raise PlanError(
            f"{path} is a plan of version {document['version']}; this hotloop reads {VERSION}.",
            "Update hotloop.",
        )
    levers = document.get("levers", [])
    if not isinstance(levers, list):
        raise PlanError(
            f'{path}: "levers" must be a list.',
            "`hotloop levers NAME` shows a plan as it is written.",
        )
    script, torch, gpu = (str(document.get(name, "")) for name in ("script", "torch", "gpu"))
    at_once = document.get("at_once") is True
    return Plan(tuple(_setting(entry, path) for entry in levers), script, torch, gpu, at_once)


def _setting(entry: Any, path: Path) -> LeverSetting:
    name = entry.get("lever") if isinstance(entry, dict) else None
    if not isinstance(name, str) or name not in LEVERS:
        known = ", ".join(sorted(LEVERS)) or "none in this version"
        raise PlanError(
            f"{path} names an optimisation that this hotloop does not have: {name!r}.",
            f"Known are: {known}.",
        )
    setting = entry.get("setting", {})
    if not isinstance(setting, dict):
        raise PlanError(
            f'{path}: the "setting" of {name} must be an object.',
            "`hotloop levers NAME` shows a plan as it is written.",
        )
    problem = _problem(name, setting)
    if problem:
        raise PlanError(f"{path}: {name} cannot be set like this: {problem}.", _remedy(name))
    return LeverSetting(lever=name, setting=setting)


def _problem(name: str, setting: dict[str, Any]) -> str:
    kind = LEVERS[name]
    defaults = {field.name: field.default for field in fields(kind)}  # type: ignore[arg-type]
    for key, value in setting.items():
        if key not in defaults:
            return f"it has no setting {key!r}"
        is_whole = type(value) is int and type(defaults[key]) is float
        if type(value) is not type(defaults[key]) and not is_whole:
            return f"{key} must be of type {type(defaults[key]).__name__}, not {value!r}"
    return kind(**setting).problem()


def _remedy(name: str) -> str:
    return f"`hotloop levers {name}` shows its settings."
