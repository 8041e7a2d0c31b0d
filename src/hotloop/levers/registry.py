"""The optimisations hotloop can apply, as an explicit list: importing a file registers nothing."""

from __future__ import annotations

LEVERS: dict[str, object] = {}
