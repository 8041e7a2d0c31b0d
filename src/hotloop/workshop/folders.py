"""Where a trial lies in its study."""

from __future__ import annotations

from pathlib import Path


def free_folder(study: Path, number: int) -> Path:
    """A trial that was killed has left a folder, but no result that counts."""
    folder = study / f"trial-{number}"
    attempt = 1
    while folder.exists():
        attempt += 1
        folder = study / f"trial-{number}-{attempt}"
    return folder
