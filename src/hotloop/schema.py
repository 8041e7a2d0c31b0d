"""The JSON schema of a study, made from the values themselves: `docs/study.schema.json`."""

from __future__ import annotations

import ast
import inspect
import json
from typing import Any

import msgspec

from hotloop.study import VERSION, Study


def study_schema() -> dict[str, Any]:
    (made,), parts = msgspec.json.schema_components([Study], ref_template="#/$defs/{name}")
    for name, kind in _dataclasses(Study).items():
        _describe(parts[name], kind)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"A study of hotloop, format {VERSION}",
        **made,
        "$defs": dict(sorted(parts.items())),
    }


def text() -> str:
    return json.dumps(study_schema(), indent=1, ensure_ascii=False) + "\n"


def _describe(part: dict[str, Any], kind: type) -> None:
    """With what the source says under each field."""
    for name, words in _documented(kind).items():
        if name in part["properties"]:
            part["properties"][name]["description"] = words


def _documented(kind: type) -> dict[str, str]:
    """Python itself keeps no documentation of fields: it stands right after them."""
    body = ast.parse(inspect.getsource(kind)).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match after:
                case ast.Expr(value=ast.Constant(value=str(words))):
                    found[field.target.id] = " ".join(words.split())
    return found


def _dataclasses(root: type) -> dict[str, type]:
    """All that a study is made of, by name."""
    found: dict[str, type] = {}
    left: list[Any] = [msgspec.inspect.type_info(root)]
    while left:
        kind = left.pop()
        if isinstance(kind, msgspec.inspect.DataclassType):
            if kind.cls.__name__ in found:
                continue
            found[kind.cls.__name__] = kind.cls
            left += [field.type for field in kind.fields]
        else:
            left += _inside(kind)
    return found


def _inside(kind: Any) -> list[Any]:
    """Of a list, a tuple, a mapping or a choice."""
    several = [*getattr(kind, "item_types", ()), *getattr(kind, "types", ())]
    single = [getattr(kind, name, None) for name in ("item_type", "key_type", "value_type")]
    return [*several, *(one for one in single if one is not None)]
