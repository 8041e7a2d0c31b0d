"""Putting other functions in the place of built-in ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

Call = Callable[..., Any]


class StandIn(staticmethod):  # type: ignore[type-arg]  # subscriptable to mypy alone
    """Like a built-in function, and unlike one written in Python, it does not turn into a method
    where a class has it as an attribute, and it is pickled by its name."""

    def __init__(self, call: Call, real: Call, module: str) -> None:
        super().__init__(call)
        self.__name__ = self.__qualname__ = real.__name__
        self.__module__ = module
        self.__doc__ = real.__doc__

    def __reduce__(self) -> str:
        return self.__name__


def put_everywhere(stand_ins: Mapping[Call, StandIn]) -> None:
    """Wherever a module that is loaded holds one of the functions: `from os import stat` and
    `def close(self, unlink=os.unlink)` keep what `os` had at that time."""
    for able in (
        os.supports_dir_fd,
        os.supports_effective_ids,
        os.supports_fd,
        os.supports_follow_symlinks,
    ):
        able |= {stand_ins[real] for real in stand_ins.keys() & able}
    # By identity, for not everything that a module holds can be hashed or compared.
    by_identity = {id(real): stand_in for real, stand_in in stand_ins.items()}
    for name, module in list(sys.modules.items()):
        implements = name in ("posix", "_io") or name.startswith(__package__)
        if isinstance(module, ModuleType) and not implements:
            _put(module, by_identity)
            for value in list(vars(module).values()):
                if isinstance(value, type) and value.__module__ == name:
                    _put(value, by_identity)


def _put(owner: ModuleType | type, stand_ins: Mapping[int, StandIn]) -> None:
    for name, value in list(vars(owner).items()):
        if id(value) in stand_ins:
            setattr(owner, name, stand_ins[id(value)])
        elif isinstance(value, FunctionType) and value.__defaults__:
            value.__defaults__ = tuple(stand_ins.get(id(each), each) for each in value.__defaults__)
