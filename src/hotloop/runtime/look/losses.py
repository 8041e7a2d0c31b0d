"""The loss functions of torch's that the script calls, in the steps whose operators are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hotloop.inspection import LossSeen
from hotloop.seams import Seams


@dataclass
class _Calls:
    count: int = 0
    elements: int = 0


class LossCalls:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._counting = self._inside = False
        self._calls: dict[tuple[str, bool, int], _Calls] = {}

    def attach(self, seams: Seams) -> None:
        seams.model.before.append(lambda args, kwargs: self._enter(True))
        seams.model.after.append(lambda args, result, began: self._enter(False))
        seams.loss.before.append(self._call)

    def begin(self) -> None:
        """Anew, if it has begun before."""
        self._counting = True
        self._calls.clear()

    def seen(self) -> list[LossSeen]:
        return [
            LossSeen(function, inside, calls.count, calls.elements, itemsize)
            for (function, inside, itemsize), calls in self._calls.items()
        ]

    def _enter(self, inside: bool) -> None:
        self._inside = inside

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Those that learn. `input` is what torch calls the first argument of all of them."""
        given = args[0] if args else kwargs.get("input")
        if not self._counting or not isinstance(given, self._torch.Tensor):
            return
        if given.requires_grad and self._torch.is_grad_enabled():
            key = kwargs["by"].__name__, self._inside, given.element_size()
            calls = self._calls.setdefault(key, _Calls())
            calls.count += 1
            calls.elements += given.numel()
