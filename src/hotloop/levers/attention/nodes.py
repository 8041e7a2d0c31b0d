"""Nodes of a captured graph, read: what they do, to what, and who uses the result."""

from __future__ import annotations

from typing import Any

KNOWN = ("torch", "_operator", "builtins", "math", "hotloop")
"""Packages whose functions are what their names say; ours are those that an examination puts in
the place of torch's, to switch dropout off."""
CASTS = {"to", "float", "half", "bfloat16", "type", "type_as"}
VIEWS = {"view", "reshape", "flatten", "unflatten", "view_as", "reshape_as"}
INPLACE_OPERATORS = {"iadd": "add", "isub": "sub", "imul": "mul", "itruediv": "truediv"}
_NAMES = """
mean sum view reshape size dim detach squeeze unsqueeze transpose div truediv getattr getitem
"""
WITHOUT_TRACE = frozenset(_NAMES.split())
"""Functions that do nothing but compute: one whose result nobody uses need not be there."""


class NotUnderstood(Exception):
    """It is left as it is, for this reason."""


def is_node(value: Any) -> bool:
    return hasattr(value, "op") and hasattr(value, "users")


def name_of(node: Any) -> str:
    """Of the function or method it calls, as torch names it; empty for anything else."""
    if node.op == "call_method":
        return _without_dunders(str(node.target))
    if node.op != "call_function":
        return ""
    module = getattr(node.target, "__module__", None) or "torch"
    return node.target.__name__ if module.split(".")[0] in KNOWN else ""


def _without_dunders(method: str) -> str:
    """As Python's operator module has it: torch 2.11 captures a == b as a.__eq__(b)."""
    if not (method.startswith("__") and method.endswith("__")):
        return method
    name = method[2:-2]
    return f"{name}_" if name in ("and", "or", "not") else name


def given(node: Any, index: int, name: str, default: Any = None) -> Any:
    """An argument, however it was written."""
    if len(node.args) > index:
        return node.args[index]
    return node.kwargs.get(name, default)


def example(node: Any) -> Any:
    """What Dynamo knows of its result: a tensor with a shape and a format, but without values."""
    return node.meta.get("example_value")


def shape(node: Any) -> tuple[int | str, ...]:
    """Numbers, and the name of a symbol where a size may change from call to call."""
    known = example(node)
    if not hasattr(known, "shape"):
        raise NotUnderstood("the shapes in it are not known")
    return tuple(size if type(size) is int else str(size) for size in known.shape)


def dtype(node: Any) -> Any:
    return example(node).dtype


def is_tensor(value: Any) -> bool:
    return is_node(value) and hasattr(example(value), "shape")


def in_place(node: Any) -> bool:
    """Whether it changes its first argument: `masked_fill_`, or `operator.iadd`."""
    name = name_of(node)
    if name in ("and_", "or_", "not_") or name.endswith("__"):  # of Python's operator module
        return False
    return name.endswith("_") or name in INPLACE_OPERATORS


def is_written(node: Any) -> bool:
    """Whether something changes it in place."""
    return any(
        (in_place(user) or name_of(user) == "setitem") and given(user, 0, "input") is node
        for user in node.users
    )


def plain_name(node: Any) -> str:
    """What it computes, whether in place or not."""
    name = name_of(node)
    return INPLACE_OPERATORS.get(name) or (name.rstrip("_") if in_place(node) else name)


def is_dead(node: Any) -> bool:
    """Nothing comes of it: averaged weights that nobody looks at, say."""
    return name_of(node) in WITHOUT_TRACE and all(is_dead(user) for user in node.users)
