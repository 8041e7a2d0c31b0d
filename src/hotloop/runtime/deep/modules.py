"""Modules as named ranges: every call of one that runs eagerly, and of a compiled one as a whole.

Forward hooks would do, but torch.compile looks at those, global ones too, and compiles anew. So the
method that all modules are called by is replaced, which compiled code passes by.
"""

from __future__ import annotations

import sys
import threading
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
        self._patches = Patches()

    def begin(self) -> None:
        for known in self._roots:
            root = known()
            if root is not None:
                self._name(root)
        module = self._torch.nn.Module
        passing = self._passing(module._call_impl)
        if "torch._dynamo" in sys.modules:
            sys.modules["torch._dynamo.decorators"].skip(passing)
        self._patches.replace(module, "_call_impl", passing)

    def end(self) -> None:
        self._patches.restore()

    def _name(self, root: Any) -> None:
        kind = type(getattr(root, COMPILED, root)).__name__
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
            return self._call(module, compiled, args, kwargs)

        return call

    def _passing(self, original: Any) -> Any:
        is_compiling, call = self._torch.compiler.is_compiling, self._call

        def _call_impl(module: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(module, *args, **kwargs)
            return call(module, original, (module, *args), kwargs)

        return _call_impl

    def _call(self, module: Any, original: Any, args: Any, kwargs: Any) -> Any:
        name = PREFIX + (self._names.get(id(module)) or _unnamed(module))
        is_known = name == self._ranges.innermost  # a compiled module and what it wraps are one
        if is_known or threading.get_ident() != self._thread or _is_generated(module):
            return original(*args, **kwargs)
        self._ranges.begin(name)
        try:
            return original(*args, **kwargs)
        finally:
            self._ranges.end()


def _unnamed(module: Any) -> str:
    """Of no model: a criterion, say."""
    kind = type(module).__name__
    return f"{kind} ({kind})"


def _is_generated(module: Any) -> bool:
    return type(module).__module__.startswith("torch.fx")
