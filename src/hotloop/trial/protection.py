"""Which of the user's folders a trial may not touch, where it writes instead, and what it wrote."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from hotloop import codec
from hotloop.job import ScriptJob
from hotloop.trial.shielded import changed, unshielded
from hotloop.trial.trial import Shielding

_ABSOLUTE = re.compile(r"(?<![\w.~:/\\-])/[\w.@+-]+(?:/[\w.@+-]+)*")
_SYSTEMS = re.compile("bin|boot|dev|etc|lib.*|nix|proc|run|sbin|snap|sys|usr|var")
"""Folders at the top of the file system in which no job keeps what it makes."""
_TEXTS = (".cfg", ".gin", ".ini", ".json", ".py", ".toml", ".yaml", ".yml")
_MOST_BYTES = 2**20
"""Of a text: data may have the same names."""
_CACHES = ("HF_HOME", "TORCH_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")


def to_protect(job: ScriptJob) -> list[str]:
    """Where a script may write: where it runs, where it lies, home, and what is named to it: by
    its arguments, by variables, in its own text and in those that its arguments name."""
    places = [Path(job.cwd), Path.home()]
    texts = []
    if not job.is_module:
        texts.append(Path(job.cwd, job.target))
        places.append(texts[0].parent)
    for argument in job.args:
        with contextlib.suppress(OSError, ValueError):
            named = Path(job.cwd, argument.rpartition("=")[2].strip("\"'"))
            places.append(_nearest_folder(named))
            texts.append(named)
    written = (path for text in texts for path in _ABSOLUTE.findall(_read(text)))
    places += _of_the_users(job, (*_variables(), *written))
    return sorted({str(place.resolve()) for place in places if place.is_dir()} - {"/"})


def _variables() -> Iterator[str]:
    """Those of caches are meant to outlast a run."""
    for name, value in os.environ.items():
        if name not in ("OLDPWD", *_CACHES) and "CACHE" not in name:
            yield value


def _of_the_users(job: ScriptJob, paths: Iterable[str]) -> Iterator[Path]:
    """Neither the system's nor the interpreter's, nor what is temporary."""
    temporary = Path(tempfile.gettempdir()).resolve()
    for path in dict.fromkeys(path for path in paths if _ABSOLUTE.fullmatch(path)):
        with contextlib.suppress(OSError, ValueError):
            place = _nearest_folder(Path(path)).resolve()
            is_system = _SYSTEMS.fullmatch("".join(place.parts[1:2]))
            holds_others = any(one.is_relative_to(place) for one in (temporary, Path(job.python)))
            if not is_system and not holds_others and not place.is_relative_to(temporary):
                yield place


def _read(text: Path) -> str:
    if text.suffix.lower() not in _TEXTS:
        return ""
    with contextlib.suppress(OSError), text.open("rb") as file:
        return file.read(_MOST_BYTES).decode(errors="replace")
    return ""


def kept_caches() -> list[str]:
    """Downloads and caches are meant to outlast a run; a trial adds to them as the script would."""
    home = Path.home()
    caches = [os.environ.get("XDG_CACHE_HOME") or home / ".cache", home / ".nv", home / ".triton"]
    named = [os.environ[name] for name in _CACHES if os.environ.get(name)]
    return [str(path) for path in (*caches, *named) if Path(path).is_dir()]


def shielding(report: Path, scratch: Path) -> Shielding:
    """As `enter` reported it, and as the scratch folder shows it."""
    try:
        told = codec.decode(report.read_bytes(), dict[str, object])
    except (OSError, ValueError):
        return Shielding()
    protected = told.get("protected")
    folders = [str(path) for path in protected] if isinstance(protected, list) else []
    why = told.get("why")
    return Shielding(
        way=str(told.get("way", "none")),
        why_not_overlay=None if why is None else str(why),
        kept_apart=tuple(changed(str(scratch), folders)),
        unshielded=tuple(unshielded(str(scratch))),
    )


def _nearest_folder(path: Path) -> Path:
    """The folder itself, or what exists of it: a script may be about to create the rest."""
    while not path.is_dir():
        path = path.parent
    return path
