"""Compiling modules in place: class, names in checkpoints and pickles stay as they are."""

from __future__ import annotations

from typing import Any


def compile_in_place(torch: Any, module: Any, **how: Any) -> None:
    """As `module.compile()`, which leaves out modules whose forward is torch's own.

    torch skips its own code as a beginning, but not on the way: `Sequential().compile()` captures
    nothing at all, a function that calls it does.
    """
    if getattr(module.forward, "__module__", "").startswith("torch.nn.modules"):
        module._compiled_call_impl = torch.compile(_through_a_function(module), **how)
    else:
        module.compile(**how)


def is_compiled(module: Any) -> bool:
    return hasattr(module, "_orig_mod") or module._compiled_call_impl is not None


def _through_a_function(module: Any) -> Any:
    def call(*args: Any, **kwargs: Any) -> Any:
        return module._call_impl(*args, **kwargs)

    return call
