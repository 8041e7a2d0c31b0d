"""Where the CPU waits for the GPU, because the script wants to know a value: by line, timed.

Only tensors on the device stall: optimizers ask CPU counters for their value thousands of times.
What no method of a tensor betrays (a mask used as an index, a library's own C++), the driver does:
torch can be told to warn of every synchronising call.
"""

from __future__ import annotations

import sys
import threading
import warnings
from time import perf_counter_ns
from typing import Any

from hotloop.inspection import Synchronisation
from hotloop.runtime.look.frames import Frames
from hotloop.runtime.patches import Patches

METHODS = {
    "item": ".item()",
    "cpu": ".cpu()",
    "numpy": ".numpy()",
    "tolist": ".tolist()",
    "nonzero": "nonzero",
    "__bool__": "if tensor",
    "__int__": "int(tensor)",
    "__float__": "float(tensor)",
    "__index__": "index(tensor)",
    "__repr__": "print",
    "__format__": "print",
    "__contains__": "in tensor",
}
FUNCTIONS = {"nonzero": "nonzero", "unique": "unique", "equal": "torch.equal"}
OF_CUDA = {"synchronize": "torch.cuda.synchronize()"}
WARNING = "called a synchronizing CUDA operation"


class WaitProbe:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._frames = Frames()
        self._thread = threading.get_ident()
        self._inside = False
        self._waits: dict[tuple[str, tuple[int, ...]], Synchronisation] = {}

    @property
    def synchronisations(self) -> list[Synchronisation]:
        return list(self._waits.values())

    def attach(self, patches: Patches) -> None:
        torch = self._torch
        for name, what in METHODS.items():
            patches.replace(torch.Tensor, name, self._timed(what, getattr(torch.Tensor, name)))
        for name, what in FUNCTIONS.items():
            patches.replace(torch, name, self._timed(what, getattr(torch, name)))
        patches.replace(torch.Tensor, "to", self._to_host(torch.Tensor.to))
        for name, what in OF_CUDA.items():
            patches.replace(torch.cuda, name, self._always(what, getattr(torch.cuda, name)))
        for kind in (torch.cuda.Stream, torch.cuda.Event):
            what = f"{kind.__name__.lower()}.synchronize()"
            patches.replace(kind, "synchronize", self._always(what, kind.synchronize))

    def attach_to_driver(self, patches: Patches) -> None:
        """Once the script has made use of the device: before, this would."""
        show, mode = warnings.showwarning, self._torch.cuda.get_sync_debug_mode()

        def told(message: Any, *args: Any, **kwargs: Any) -> None:
            if WARNING not in str(message):
                show(message, *args, **kwargs)
            elif not self._inside:
                self._note("a hidden wait", perf_counter_ns(), 0.0)

        patches.replace(warnings, "showwarning", told)
        warnings.filterwarnings("always", message=WARNING)
        filters = warnings.filters[0]
        patches.on_restore(lambda: _forget(filters))
        self._torch.cuda.set_sync_debug_mode("warn")
        patches.on_restore(lambda: self._torch.cuda.set_sync_debug_mode(mode))

    def _timed(self, what: str, method: Any) -> Any:
        def call(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if getattr(tensor, "is_cuda", False):
                return self._wait(what, method, (tensor, *args), kwargs)
            return method(tensor, *args, **kwargs)

        return call

    def _to_host(self, method: Any) -> Any:
        def to(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            target = args[0] if args else kwargs.get("device")
            host = isinstance(target, str | self._torch.device) and str(target) == "cpu"
            if host and tensor.is_cuda:
                return self._wait('.to("cpu")', method, (tensor, *args), kwargs)
            return method(tensor, *args, **kwargs)

        return to

    def _always(self, what: str, function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            return self._wait(what, function, args, kwargs)

        return call

    def _wait(self, what: str, function: Any, args: Any, kwargs: Any) -> Any:
        """The outermost call counts: printing a tensor asks it for many values."""
        if self._inside or threading.get_ident() != self._thread:
            return function(*args, **kwargs)
        self._inside = True
        began = perf_counter_ns()
        try:
            return function(*args, **kwargs)
        finally:
            self._inside = False
            self._note(what, began, (perf_counter_ns() - began) / 1e9)

    def _note(self, what: str, began: int, seconds: float) -> None:
        numbers = tuple(self._frames.stack(sys._getframe(1)))
        wait = self._waits.get((what, numbers))
        if wait is None:
            stack = [self._frames.known[number] for number in numbers]
            wait = self._waits[what, numbers] = Synchronisation(what, stack, [], [])
        wait.time_ns.append(began)
        wait.seconds.append(seconds)


def _forget(added: Any) -> None:
    if added in warnings.filters:
        warnings.filters.remove(added)  # type: ignore[attr-defined]
