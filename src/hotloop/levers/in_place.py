"""Compiling modules in place: class, names in checkpoints and pickles stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

Call = Callable[..., Any]
Around = Callable[[Call, Callable[[Call], Call]], Call]
"""Given a module's plain call and what compiles a function: what to call instead of the module."""


def compile_in_place(torch: Any, module: Any, around: Around | None = None, **how: Any) -> None:
    """As `module.compile()`, which leaves out modules whose forward is torch's own.

    torch skips its own code as a beginning, but not on the way: `Sequential().compile()` captures
    nothing at all, a function that calls it does. And a class may mean something else by `compile`,
    as Keras does.
    """
    is_torchs = getattr(module.forward, "__module__", "").startswith("torch.nn.modules")
    if around is None and not is_torchs:
        torch.nn.Module.compile(module, **how)
        return
    compiled = (around or _as_it_is)(_through_a_function(module), partial(torch.compile, **how))
    module._compiled_call_impl = compiled


def is_compiled(module: Any) -> bool:
    return hasattr(module, "_orig_mod") or module._compiled_call_impl is not None


def _as_it_is(call: Call, compiled: Callable[[Call], Call]) -> Call:
    return compiled(call)


def _through_a_function(module: Any) -> Call:
    def call(*args: Any, **kwargs: Any) -> Any:
        return module._call_impl(*args, **kwargs)

    return call
