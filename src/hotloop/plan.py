"""A plan: which optimisations to apply to a job, with their settings, in order.

`hotloop.json` is meant to be read and kept under version control by its user.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
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
    version: int = VERSION

    @property
    def is_empty(self) -> bool:
        return not self.levers


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
        raise PlanError(f'{path}: "levers" must be a list.', "Compare it with the documentation.")
    return Plan(levers=tuple(_setting(entry, path) for entry in levers))


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
            "Compare it with the documentation.",
        )
    return LeverSetting(lever=name, setting=setting)
