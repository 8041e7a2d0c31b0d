"""The optimisations hotloop can apply, as an explicit list: importing a file registers nothing."""

from __future__ import annotations

from hotloop.levers.base import Lever
from hotloop.levers.tf32 import Tf32

_ALL: tuple[type[Lever], ...] = (Tf32,)

LEVERS: dict[str, type[Lever]] = {lever.name: lever for lever in _ALL}
