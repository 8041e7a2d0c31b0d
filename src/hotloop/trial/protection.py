"""Which of the user's folders a trial may not touch, where it writes instead, and what it wrote."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from hotloop import codec
from hotloop.job import ScriptJob
from hotloop.trial.shielded import changed, unshielded
from hotloop.trial.trial import Shielding

_CACHES = ("HF_HOME", "TORCH_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
_IN_CACHES = (
    *("clip", "fontconfig", "huggingface", "kagglehub", "matplotlib", "mesa_shader_cache"),
    *("modelscope", "nvidia", "pip", "torch", "torch_extensions", "triton", "uv", "whisper"),
)
"""Whose folders hold nothing but what can be had again. Of others nobody knows: some projects keep
their checkpoints there."""


def to_protect(job: ScriptJob) -> list[str]:
    """Where a script may write: where it runs, where it lies, home, and what its arguments name."""
    places = [Path(job.cwd), Path.home()]
    if not job.is_module:
        places.append(Path(job.cwd, job.target).parent)
    for argument in job.args:
        with contextlib.suppress(OSError, ValueError):
            places.append(_nearest_folder(Path(job.cwd, argument.rpartition("=")[2].strip("\"'"))))
    return sorted({str(place.resolve()) for place in places if place.is_dir()} - {"/"})


def kept_caches() -> list[str]:
    """Downloads and caches are meant to outlast a run; a trial adds to them as the script would."""
    home = Path.home()
    usual = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    caches = [*(usual / name for name in _IN_CACHES), home / ".nv", home / ".triton"]
    named = [Path(os.environ[name]) for name in _CACHES if os.environ.get(name)]
    return [str(path) for path in (*caches, *named) if path.is_dir()]


def shielding(report: Path, scratch: Path) -> Shielding:
    """As `enter` reported it, and as the scratch folder shows it."""
    try:
        told = codec.decode(report.read_bytes(), dict[str, object])
    except (OSError, ValueError):
        return Shielding()
    why = told.get("why")
    return Shielding(
        way=str(told.get("way", "none")),
        why_not_overlay=None if why is None else str(why),
        kept_apart=tuple(changed(str(scratch))),
        unshielded=tuple(unshielded(str(scratch))),
    )


def _nearest_folder(path: Path) -> Path:
    """The folder itself, or what exists of it: a script may be about to create the rest."""
    while not path.is_dir():
        path = path.parent
    return path
