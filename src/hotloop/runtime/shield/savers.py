"""Libraries that open files by themselves, past Python: they are handed another path to open.

NumPy, PIL, pandas and others are not here, because they open files through Python.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

from hotloop.runtime.shield.changes import NEW_FILE, Changes
from hotloop.runtime.shield.paths import is_folder, parent
from hotloop.runtime.shield.view import View

UPDATED_FILE = os.O_RDWR | os.O_CREAT
BY_MODE = {
    "r": os.O_RDONLY,
    "r+": os.O_RDWR,
    "a": UPDATED_FILE,
    "w": NEW_FILE,
    "w-": NEW_FILE | os.O_EXCL,
    "x": NEW_FILE | os.O_EXCL,
}
"""Of HDF5, whose files may be too large to be copied for somebody who reads them."""


class Saver(NamedTuple):
    module: str
    function: str
    """A function, or Class.method."""
    position: int
    """Of the path among the arguments."""
    name: str
    flags: int | None
    """How it opens the path. None: the argument after that says it, one of `BY_MODE`."""


SAVERS = (
    Saver("torch", "save", 1, "f", NEW_FILE),
    Saver("torch", "load", 0, "f", os.O_RDONLY),
    Saver("torch.serialization", "save", 1, "f", NEW_FILE),
    Saver("torch.serialization", "load", 0, "f", os.O_RDONLY),
    Saver("torch.jit", "save", 1, "f", NEW_FILE),
    Saver("torch.jit", "load", 0, "f", os.O_RDONLY),
    Saver("torch.jit", "RecursiveScriptModule.save", 1, "f", NEW_FILE),
    Saver("torch.export", "save", 1, "f", NEW_FILE),
    Saver("torch.export", "load", 0, "f", os.O_RDONLY),
    Saver("torch.autograd.profiler", "profile.export_chrome_trace", 1, "path", NEW_FILE),
    Saver("safetensors", "serialize_file", 1, "filename", NEW_FILE),
    Saver("safetensors", "safe_open", 0, "filename", os.O_RDONLY),
    Saver("safetensors.torch", "save_file", 1, "filename", NEW_FILE),
    Saver("safetensors.torch", "save_model", 1, "filename", NEW_FILE),
    Saver("safetensors.torch", "load_file", 0, "filename", os.O_RDONLY),
    Saver("safetensors.torch", "load_model", 1, "filename", os.O_RDONLY),
    Saver("safetensors.numpy", "save_file", 1, "filename", NEW_FILE),
    Saver("safetensors.numpy", "load_file", 0, "filename", os.O_RDONLY),
    Saver("torchvision.io", "write_file", 0, "filename", NEW_FILE),
    Saver("torchvision.io", "write_jpeg", 1, "filename", NEW_FILE),
    Saver("torchvision.io", "write_png", 1, "filename", NEW_FILE),
    Saver("cv2", "imwrite", 0, "filename", NEW_FILE),
    Saver("h5py._hl.files", "File.__init__", 1, "name", None),
    Saver("sqlite3", "connect", 0, "database", UPDATED_FILE),
    Saver("sqlite3.dbapi2", "connect", 0, "database", UPDATED_FILE),
)


def install(view: View, changes: Changes) -> None:
    """Each as soon as the script has imported its module."""
    from hotloop.runtime.imports import when_imported

    for module in dict.fromkeys(saver.module for saver in SAVERS):
        when_imported(module, functools.partial(_redirect_all, view, changes))


def _redirect_all(view: View, changes: Changes, module: ModuleType) -> None:
    for saver in SAVERS:
        if saver.module != module.__name__:
            continue
        kind, _, name = saver.function.rpartition(".")
        owner = getattr(module, kind, None) if kind else module
        function = getattr(owner, name, None)
        if function is not None:  # other versions may lack it
            place = functools.partial(_place, view, changes)
            setattr(owner, name, _redirected(function, saver, place))


def _redirected(
    function: Callable[..., Any], saver: Saver, place: Callable[[int, Any], Any]
) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        before, after = args[: saver.position], args[saver.position + 1 :]
        flags = saver.flags
        if flags is None:
            flags = BY_MODE.get(kwargs.get("mode") or next(iter(after), "r"), UPDATED_FILE)
        if saver.name in kwargs:
            kwargs[saver.name] = place(flags, kwargs[saver.name])
        elif len(args) > saver.position:
            args = (*before, place(flags, args[saver.position]), *after)
        return function(*args, **kwargs)

    return call


def _place(view: View, changes: Changes, flags: int, path: Any) -> Any:
    """Another path to open; what is no path, such as an open file, stays as it is."""
    if not isinstance(path, str | os.PathLike) or _is_no_file(os.fspath(path)):
        return path
    if flags == os.O_RDONLY:
        return view.reading(path)
    try:
        return changes.writing(path, flags)
    except FileExistsError:  # it asked for a new one, and will not touch the old
        return view.reading(path)
    except OSError:  # let the library fail in its own words, where it can do no harm
        folder = parent(view.spot(path).user)
        return view.mirror.nowhere if is_folder(folder) else path


def _is_no_file(path: str | bytes) -> bool:
    """To SQLite, some texts are no paths."""
    return path in ("", ":memory:") or str(path).startswith("file:")
