"""What a trial wrote, renamed or deleted: in its scratch space instead of the user's folders.

Both ways of shielding leave trees there that lie over the user's: the upper layers of overlays,
from `hotloop.trial.enter`, and the mirror, from `hotloop.runtime.shield`. They differ in how they
mark what is deleted.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from hotloop.trial.enter import LAYERS

MIRROR = "mirror"
NOTES = "unshielded.txt"
OPAQUE = ("trusted.overlay.opaque", "user.overlay.opaque")


def changed(scratch: str) -> list[str]:
    """The user's paths that the trial created, overwrote or deleted."""
    paths = set(_differences(Path(scratch, MIRROR), Path("/"), _is_self_link))
    for layer in Path(scratch).glob(f"{LAYERS}/*"):
        original = Path(os.fsdecode((layer / "path").read_bytes()))
        paths.update(_differences(layer / "upper", original, _is_whiteout))
    return sorted(map(str, paths))


def unshielded(scratch: str) -> list[str]:
    """What got past the savers' way, one line each, as far as it was seen."""
    notes = Path(scratch, NOTES)
    text = notes.read_text(encoding="utf-8", errors="replace") if notes.exists() else ""
    return list(dict.fromkeys(text.splitlines()))


def _differences(upper: Path, original: Path, deleted: Callable[[Path], bool]) -> Iterator[Path]:
    for entry in sorted(upper.iterdir()) if upper.is_dir() else ():
        below = original / entry.name
        if deleted(entry):
            if os.path.lexists(below):  # else it came and went within the trial
                yield below
        elif entry.is_dir() and not entry.is_symlink():
            if not below.is_dir() or _is_opaque(entry):
                yield below
            yield from _differences(entry, below, deleted)
        else:
            yield below


def _is_self_link(path: Path) -> bool:
    return path.is_symlink() and os.readlink(path) == path.name


def _is_whiteout(path: Path) -> bool:
    status = path.lstat()
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


def _is_opaque(folder: Path) -> bool:
    """A folder that was deleted and made anew."""
    if sys.platform == "darwin":  # has neither overlays nor these attributes
        return False
    for name in OPAQUE:
        try:
            return os.getxattr(folder, name) == b"y"
        except OSError:
            continue
    return False
