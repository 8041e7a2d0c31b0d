"""Modules as named ranges: every call of one that runs eagerly, and of a compiled one as a whole.

Forward hooks would do, but torch.compile looks at those, global ones too, and compiles anew. So the
method that all modules are called by is replaced, which compiled code passes by.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from typing import Any

from hotloop.runtime.deep.ranges import Ranges
from hotloop.runtime.patches import Patches
from hotloop.runtime.watching import Watch

PREFIX = "module: "
COMPILED = "_orig_mod"
"""What torch.compile calls the module that it wraps."""


class ModuleRanges:
    def __init__(self, torch: Any, watch: Watch) -> None:
        self._torch = torch
        self._roots = watch.driver.roots.roots
        self._thread = threading.get_ident()
        self._ranges = Ranges(torch)
        self._names: dict[int, str] = {}
        self._kinds: Counter[str] = Counter()
        self._patches = Patches()

    def begin(self) -> None:
        self._enter, self._leave = self._begin_range, self._ranges.end
        is_compiling = "torch._dynamo" in sys.modules
        if is_compiling:  # under a compiled module every Python function called is looked into
            self._enter = self._torch._dynamo.disable(self._enter)
            self._leave = self._torch._dynamo.disable(self._leave)
        for known in self._roots:
            root = known()
            if root is not None:
                self._name(root)
        passing = self._passing(self._torch.nn.Module._call_impl)
        if is_compiling:
            sys.modules["torch._dynamo.decorators"].skip(passing)
        self._patches.replace(self._torch.nn.Module, "_call_impl", passing)

    def end(self) -> None:
        self._patches.restore()

    def _name(self, root: Any) -> None:
        kind = type(getattr(root, COMPILED, root)).__name__
        self._kinds[kind] += 1
        if self._kinds[kind] > 1:  # of two models of one class
            kind += f"#{self._kinds[kind]}"
        for path, module in root.named_modules():
            parts = [part for part in path.split(".") if part and part != COMPILED]
            own = type(getattr(module, COMPILED, module)).__name__
            self._names.setdefault(id(module), f"{'.'.join([kind, *parts])} ({own})")
            # Compiled in place: it is then called by this attribute, which is never saved.
            compiled = vars(module).get("_compiled_call_impl")
            if compiled is not None:
                self._patches.replace(module, "_compiled_call_impl", self._whole(module, compiled))

    def _whole(self, module: Any, compiled: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            is_open = self._enter(module)
            try:
                return compiled(*args, **kwargs)
            finally:
                if is_open:
                    self._leave()

        return call

    def _passing(self, original: Any) -> Any:
        is_compiling, enter, leave = self._torch.compiler.is_compiling, self._enter, self._leave

        def _call_impl(module: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(module, *args, **kwargs)
            is_open = enter(module)
            try:
                return original(module, *args, **kwargs)
            finally:
                if is_open:
                    leave()

        return _call_impl

    def _begin_range(self, module: Any) -> bool:
        """False where there is nothing to tell apart: a compiled module and what it wraps."""
        name = PREFIX + (self._names.get(id(module)) or _unnamed(module))
        if name == self._ranges.innermost or threading.get_ident() != self._thread:
            return False
        if _is_generated(module):
            return False
        self._ranges.begin(name)
        return True


def _unnamed(module: Any) -> str:
    """Of no model: a criterion, say."""
    kind = type(module).__name__
    return f"{kind} ({kind})"


def _is_generated(module: Any) -> bool:
    return type(module).__module__.startswith("torch.fx")
