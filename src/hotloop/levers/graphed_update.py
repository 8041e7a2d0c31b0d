"""An optimizer's update, and clipping before it, replayed where everything lies as it was recorded.

Weights, gradients and state that lie elsewhere than before are updated as they are. Gradients that
lie elsewhere at every step are copied to where the graph expects them: one launch more.

The script sees nothing of it. Its learning rate is copied to the device when it has changed, its
settings stay what they are, and a change of any other makes another graph.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from hotloop.levers.replaying import Replays

PATIENCE = 5
"""Updates, one after another, whose gradients lay elsewhere, until gradients are copied."""


class Update:
    """Stands in for the update of one optimizer."""

    def __init__(self, torch: Any, replays: Replays) -> None:
        self.replays = replays
        self._torch = torch
        self._rates: list[Any] = []
        """The learning rate of each group, where a graph reads it."""
        self._known: list[float] = []
        self._strays = 0
        """Updates since the last whose gradients lay where others had been."""
        self._buffers: list[Any] = []
        """Where gradients are copied, if they never lie where they lay before."""

    def __call__(self, plain: Callable[..., Any], optimizer: Any, closure: Any = None) -> Any:
        loss = None
        if closure is not None:
            with self._torch.enable_grad():
                loss = closure()
        if getattr(optimizer, "found_inf", None) is not None:  # whose place is the scaler's
            self.replays.tally.others += 1
            plain(optimizer)
        else:
            self._follow_rates(optimizer.param_groups)
            self._run(optimizer, partial(plain, optimizer))
        return loss

    def _run(self, optimizer: Any, update: Callable[[], Any]) -> None:
        learned = [
            p for group in optimizer.param_groups for p in group["params"] if p.grad is not None
        ]
        places = _places(self._torch, optimizer)
        if self._strays <= PATIENCE:
            lie = tuple((p.grad.data_ptr(), p.grad.stride()) for p in learned)
            before = self.replays.tally.replayed
            self.replays.run((places, lie), update, lambda: self._record(optimizer, update))
            self._strays = 0 if self.replays.tally.replayed > before else self._strays + 1
            return
        gradients = [p.grad for p in learned]
        self._buffers = self._buffers or [self._torch.empty_like(each) for each in gradients]
        order = tuple((each.shape, each.stride()) for each in gradients)

        def copy() -> None:
            self._torch._foreach_copy_(self._buffers, gradients)

        def record() -> None:
            with _gradients(learned, self._buffers):
                self._record(optimizer, update)

        if order == tuple((each.shape, each.stride()) for each in self._buffers):
            self.replays.run(places, update, record, copy)
        else:
            self.replays.tally.others += 1
            update()

    def _follow_rates(self, groups: list[dict[str, Any]]) -> None:
        for index, group in enumerate(groups):
            rate = float(group["lr"])
            if index == len(self._rates):
                device = next(p.device for each in groups for p in each["params"])
                self._rates.append(self._torch.tensor(rate, device=device))
                self._known.append(rate)
            elif rate != self._known[index]:
                self._rates[index].fill_(rate)
                self._known[index] = rate

    def _record(self, optimizer: Any, update: Callable[[], Any]) -> None:
        """With settings that only the graph is to see."""
        groups = optimizer.param_groups
        were = [(group["lr"], group.get("capturable")) for group in groups]
        try:
            for group, rate in zip(groups, self._rates, strict=True):
                group["lr"] = rate
                if "capturable" in group:
                    group["capturable"] = True
            update()
        finally:
            for group, (rate, capturable) in zip(groups, were, strict=True):
                group["lr"] = rate
                if "capturable" in group:
                    group["capturable"] = capturable


@contextmanager
def _gradients(parameters: list[Any], others: list[Any]) -> Iterator[None]:
    """For as long as something is recorded, other gradients than their own."""
    own = [p.grad for p in parameters]
    try:
        for p, other in zip(parameters, others, strict=True):
            p.grad = other
        yield
    finally:
        for p, gradient in zip(parameters, own, strict=True):
            p.grad = gradient


class Clips:
    """Stands in for `clip_grad_norm_`."""

    def __init__(self, torch: Any, replays: Replays) -> None:
        self.replays = replays
        self._torch = torch

    def __call__(
        self,
        plain: Callable[..., Any],
        parameters: Any,
        max_norm: Any,
        norm_type: Any = 2.0,
        error_if_nonfinite: bool = False,
        foreach: bool | None = None,
    ) -> Any:
        torch = self._torch
        listed = [parameters] if torch.is_tensor(parameters) else list(parameters)
        clip = partial(plain, listed, max_norm, norm_type, error_if_nonfinite, foreach)
        gradients = [p.grad for p in listed if p.grad is not None]
        waits = error_if_nonfinite or torch.is_tensor(max_norm)
        if waits or not self.replays.can_record(gradients):
            return clip()
        places = tuple((each.data_ptr(), each.shape, each.stride()) for each in gradients)
        return self.replays.run((max_norm, norm_type, foreach, places), clip, clip)


def _places(torch: Any, optimizer: Any) -> Hashable:
    """Where weights and state lie that an update writes, and all settings that it goes by."""
    found: list[Hashable] = []
    states, is_tensor = optimizer.state, torch.is_tensor
    for group in optimizer.param_groups:
        settings = (group.get(name) for name in optimizer.defaults if name != "lr")
        found += [tuple(each) if isinstance(each, list) else each for each in settings]
        for p in group["params"]:
            if p.grad is None:
                found.append(None)
                continue
            found.append(p.data_ptr())
            found += [each.data_ptr() for each in states.get(p, {}).values() if is_tensor(each)]
    return tuple(found)
