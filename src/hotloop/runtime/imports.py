"""Being told when the script imports a module, without importing it first.

Importing torch before the script does would change the script: one that sets OMP_NUM_THREADS above
its own `import torch` would be too late. The finder stays in place, so a script that merely asks
`importlib.util.find_spec("torch")` does not use it up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

Action = Callable[[ModuleType], None]


def when_imported(name: str, action: Action) -> None:
    """Calls `action(module)` once, right after the module has run; now, if it already has."""
    if name in sys.modules:
        action(sys.modules[name])
        return
    finder = next((entry for entry in sys.meta_path if isinstance(entry, _Finder)), None)
    if finder is None:
        finder = _Finder()
        sys.meta_path.insert(0, finder)
    finder.actions.setdefault(name, []).append(action)


class _Finder:
    def __init__(self) -> None:
        self.actions: dict[str, list[Action]] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in self.actions:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                self._wrap(spec)
                return spec
        return None

    def _wrap(self, spec: ModuleSpec) -> None:
        """On the loader object itself, so that it keeps its type and everything else it can do."""
        loader = spec.loader
        if loader is None or "exec_module" in getattr(loader, "__dict__", {}):
            return
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            run(module)
            for action in self.actions.pop(module.__name__, []):
                action(module)

        loader.exec_module = exec_module  # type: ignore[method-assign]
