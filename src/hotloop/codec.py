"""Values to and from JSON, checked against their types. For the parent: the child uses `json`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TypeVar

import msgspec

from hotloop.errors import StudyNotWritable

T = TypeVar("T")


def decode(text: bytes, kind: type[T]) -> T:
    """Raises ValueError for what is not JSON and for what does not fit."""
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        # Half a surrogate pair, perhaps: so Python carries the name of a file that is not UTF-8.
        return msgspec.convert(json.loads(text), kind)


def encode(value: object, indent: int = -1) -> bytes:
    """`indent`: none, unless told."""
    try:
        whole = msgspec.json.encode(value)
        return whole if indent < 0 else msgspec.json.format(whole, indent=indent)
    except UnicodeEncodeError:
        builtins = msgspec.to_builtins(value)
        return json.dumps(builtins, indent=indent if indent >= 0 else None).encode()


def write(path: Path, value: object, indent: int = 1) -> None:
    """Whole or not at all: a reader never meets half a file, not even after a power cut."""
    partial = path.with_name(path.name + ".partial")
    try:
        with partial.open("wb") as file:
            file.write(encode(value, indent))
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        raise StudyNotWritable(
            f"{path} cannot be written: {error.strerror}.",
            "Free some space, or name another folder with --study.",
        ) from None
