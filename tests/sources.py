"""The package's own source text, parsed: what each module imports, and when."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import hotloop

PACKAGE = Path(hotloop.__file__).parent
ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Module:
    name: str
    path: Path
    tree: ast.Module

    @cached_property
    def at_once(self) -> set[str]:
        """What is imported when the module is."""
        return set(_imports(_run_on_import(self.tree.body), self.package))

    @cached_property
    def ever(self) -> set[str]:
        """What is imported then or later, by a function of it."""
        types = {id(node) for part in ast.walk(self.tree) for node in _only_for_types(part)}
        nodes = (node for node in ast.walk(self.tree) if id(node) not in types)
        return set(_imports(nodes, self.package))

    @property
    def package(self) -> str:
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node


@cache
def modules() -> dict[str, Module]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ("hotloop", *path.relative_to(PACKAGE).with_suffix("").parts)
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, path, ast.parse(path.read_text(encoding="utf-8")))
    return found


def below(*names: str) -> list[Module]:
    """These modules, and all that lie inside them."""
    return [
        module
        for module in modules().values()
        if any(module.name == name or module.name.startswith(f"{name}.") for name in names)
    ]


def reached_from(name: str) -> dict[str, list[str]]:
    """All that importing this module imports at once, each with the way it is reached."""
    ways = {name: [name]}
    pending = [name]
    while pending:
        current = pending.pop()
        for imported in modules()[current].at_once if current in modules() else ():
            if imported not in ways:
                ways[imported] = [*ways[current], imported]
                pending.append(imported)
    return ways


def _run_on_import(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        yield node
        skipped = {id(part) for part in _only_for_types(node)}
        inner = (part for part in ast.iter_child_nodes(node) if id(part) not in skipped)
        yield from _run_on_import(inner)


def _only_for_types(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        for part in node.body:
            yield from ast.walk(part)


def _imports(nodes: Iterable[ast.AST], package: str) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _with_parents(alias.name)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - node.level + 1]
            base = ".".join([*parts, node.module or ""]).strip(".") if node.level else node.module
            assert base is not None
            yield from _with_parents(base)
            yield from {f"{base}.{alias.name}" for alias in node.names} & modules().keys()


def _with_parents(name: str) -> Iterator[str]:
    parts = name.split(".")
    for length in range(1, len(parts) + 1):
        yield ".".join(parts[:length])
