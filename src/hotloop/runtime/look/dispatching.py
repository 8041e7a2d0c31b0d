"""Standing between torch's operators and those who call them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def every_operator(torch: Any, see: Callable[..., Any]) -> Any:
    """A context in which `see` is called in place of each, and calls it itself."""
    from torch.utils._python_dispatch import TorchDispatchMode

    composite = "CompositeImplicitAutograd"
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key

    class Seeing(TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            kwargs = kwargs or {}
            if not hasattr(function, "_overloadpacket"):  # a higher-order operator
                return function(*args, **kwargs)
            if has_kernel(function.name(), composite):
                # In inference mode an operator comes whole; its parts are what is counted.
                with self:
                    parts = function.decompose(*args, **kwargs)
                if parts is not NotImplemented:
                    return parts
            return see(function, args, kwargs)

    return Seeing()
