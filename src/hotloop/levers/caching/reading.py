"""Globals of the script that a dataset's own code reads: settings in a class, say, or an epoch.

What the code of a dataset and of its transforms names is looked up where it stands. Code of
installed packages is taken to read no settings of the script's.
"""

from __future__ import annotations

import dis
import functools
import sysconfig
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from hotloop.inspection import PACKAGES

MOST_FUNCTIONS = 200
NAMED = ("LOAD_GLOBAL", "LOAD_NAME")
INSIDE = ("LOAD_ATTR", "LOAD_METHOD")


def read_by(things: Iterable[Any]) -> list[Any]:
    """What the functions of these objects, or they themselves, read of their modules."""
    pending = [function for thing in things for function in _functions(thing)]
    known: set[int] = set()
    found: list[Any] = []
    while pending and len(known) < MOST_FUNCTIONS:
        function = pending.pop()
        if id(function.__code__) in known:
            continue
        known.add(id(function.__code__))
        for value in _read(function):
            if isinstance(value, FunctionType):
                pending.extend(_functions(value))
            elif not isinstance(value, type | ModuleType | BuiltinFunctionType):
                found.append(value)
    return found


def _functions(thing: Any) -> Iterator[FunctionType]:
    if isinstance(thing, MethodType):
        thing = thing.__func__
    if isinstance(thing, FunctionType):
        yield from [thing] if _is_users(thing.__code__.co_filename) else []
        return
    for kind in type(thing).__mro__:
        for value in list(vars(kind).values()):
            function = getattr(value, "__func__", getattr(value, "fget", value))
            if isinstance(function, FunctionType) and _is_users(function.__code__.co_filename):
                yield function


def _read(function: FunctionType) -> Iterator[Any]:
    for name, attributes in _named(function.__code__):
        if name not in function.__globals__:
            continue
        value = function.__globals__[name]
        for attribute in attributes:
            inside = _attributes(value)
            if attribute not in inside or _is_foreign(value):
                break
            value = inside[attribute]
        if not _is_foreign(value):
            yield value


def _attributes(value: Any) -> dict[str, Any]:
    """As they stand: a property would be the script's own code."""
    if isinstance(value, type):
        return {name: held for kind in reversed(value.__mro__) for name, held in vars(kind).items()}
    try:
        return dict(vars(value))
    except TypeError:
        return {}


def _is_foreign(value: Any) -> bool:
    """A module of somebody else, which is large and no setting."""
    return isinstance(value, ModuleType) and not _is_users(getattr(value, "__file__", None) or "")


@functools.lru_cache(maxsize=1024)
def _named(code: CodeType) -> list[tuple[str, list[str]]]:
    """Global names, each with the attributes that are asked of it at once."""
    found: list[tuple[str, list[str]]] = []
    goes_on = False
    for now in dis.get_instructions(code):
        if now.opname in NAMED:
            found.append((now.argval, []))
            goes_on = True
        elif goes_on and now.opname in INSIDE:
            found[-1][1].append(now.argval)
        else:
            goes_on = False
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found += _named(constant)
    return found


@functools.lru_cache(maxsize=1024)
def _is_users(file: str) -> bool:
    if not file or file.startswith(("<frozen", sysconfig.get_paths()["stdlib"])):
        return False
    return not any(f"/{package}/" in file for package in PACKAGES)
