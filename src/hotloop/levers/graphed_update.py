"""An optimizer's update, and clipping before it, replayed where everything lies as it was recorded.

Weights, gradients and state that lie elsewhere than before are updated as they are. Gradients that
often lie elsewhere are copied to where the graph expects them: one launch more.

The script sees nothing of it. Its learning rate is copied to the device when it has changed, its
settings stay what they are, and a change of any other makes another graph.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from hotloop.levers.replaying import ENOUGH, Replays

PATIENCE, WATCHED = 3, 12
"""Of so many updates before, those whose gradients lay elsewhere, until gradients are copied."""
SETS = 4
"""Of gradients that are copied: a script may freeze some of its weights, and learn them later."""

RECORDED = ("lr", "capturable", "foreach")
"""Settings that are others while an update is recorded."""


class Update:
    """Stands in for the update of one optimizer."""

    def __init__(self, torch: Any, replays: Replays) -> None:
        self.replays = replays
        self._torch = torch
        self._rates: list[Any] = []
        """The learning rate of each group, where a graph reads it."""
        self._known: list[float] = []
        self._strayed: deque[bool] = deque(maxlen=WATCHED)
        """Of the last updates: whether gradients lay where none had been."""
        self._buffers: dict[Hashable, list[Any]] = {}
        """Where gradients of these forms are copied, if too many of them lie elsewhere."""
        self._has_room = True

    def __call__(self, plain: Callable[..., Any], optimizer: Any, closure: Any = None) -> Any:
        loss = None
        if closure is not None:
            with self._torch.enable_grad():
                loss = closure()
        self._run(optimizer, partial(plain, optimizer))
        return loss

    def _run(self, optimizer: Any, update: Callable[[], Any]) -> None:
        replays = self.replays
        learned = [
            p for group in optimizer.param_groups for p in group["params"] if p.grad is not None
        ]
        gradients = [p.grad for p in learned]
        scaled = getattr(optimizer, "found_inf", None) is not None  # whose place is the scaler's
        places = None if scaled else _places(self._torch, optimizer)
        if places is None or not replays.bears(gradients):
            replays.as_it_is(update)
            return
        self._follow_rates(optimizer.param_groups)
        before = replays.tally.replayed
        is_patient = sum(self._strayed) <= PATIENCE and replays.tally.recorded < ENOUGH
        if is_patient and not self._buffers:
            lie = tuple((each.data_ptr(), each.stride()) for each in gradients)
            replays.run((places, lie), update, lambda: self._record(optimizer, update))
            self._strayed.append(replays.tally.replayed == before)
        else:
            self._run_on_copies(optimizer, update, learned, places)
        if replays.tally.replayed > before:  # of which autograd has heard nothing
            self._torch.autograd.graph.increment_version(learned)

    def _run_on_copies(
        self, optimizer: Any, update: Callable[[], Any], learned: list[Any], places: Hashable
    ) -> None:
        gradients = [p.grad for p in learned]
        forms = _forms(gradients)
        buffers = self._buffers.get(forms) or self._made(forms, gradients)
        if buffers is None:
            self.replays.as_it_is(update)
            return

        def copy() -> None:
            with self._torch.no_grad():
                self._torch._foreach_copy_(buffers, gradients)

        def record() -> None:
            with _gradients(learned, buffers):
                self._record(optimizer, update)

        self.replays.run((places, forms), update, record, copy)

    def _made(self, forms: Hashable, gradients: list[Any]) -> list[Any] | None:
        """None where there is no room: an optimisation must not end a training."""
        if len(self._buffers) == SETS or self.replays.is_spent or not self._has_room:
            return None
        try:
            made = [self._torch.empty_like(each) for each in gradients]
        except self._torch.OutOfMemoryError:
            self._has_room = False
            return None
        self._buffers[forms] = made
        return made

    def _follow_rates(self, groups: list[dict[str, Any]]) -> None:
        for index, group in enumerate(groups):
            rate = float(group["lr"])
            if index == len(self._rates):
                device = next(p.device for each in groups for p in each["params"])
                self._rates.append(
                    self._torch.tensor(rate, dtype=self._torch.float32, device=device)
                )
                self._known.append(rate)
            elif rate != self._known[index]:
                self._rates[index].fill_(rate)
                self._known[index] = rate

    def _record(self, optimizer: Any, update: Callable[[], Any]) -> None:
        """With settings that only the graph is to see."""
        groups = optimizer.param_groups
        were = [{name: group[name] for name in RECORDED if name in group} for group in groups]
        try:
            for group, rate in zip(groups, self._rates, strict=False):  # one may be gone
                group["lr"] = rate
                if "capturable" in group:
                    group["capturable"] = True
                if not group.get("fused"):  # one after the other, rates are read on the host
                    group["foreach"] = True
            update()
        finally:
            for group, was in zip(groups, were, strict=True):
                group.update(was)


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
        torch, replays = self._torch, self.replays
        listed = [parameters] if torch.is_tensor(parameters) else list(parameters)
        clip = partial(plain, listed, max_norm, norm_type, error_if_nonfinite, foreach)
        gradients = [p.grad for p in listed if p.grad is not None]
        waits = error_if_nonfinite or torch.is_tensor(max_norm)
        if waits or not replays.bears(gradients):
            return replays.as_it_is(clip)
        before = replays.tally.replayed
        places = tuple(each.data_ptr() for each in gradients), _forms(gradients)
        norm = replays.run((max_norm, norm_type, foreach, places), clip, clip)
        if replays.tally.replayed > before:
            torch.autograd.graph.increment_version(gradients)
        return norm


def _forms(tensors: list[Any]) -> Hashable:
    return tuple((each.shape, each.stride(), each.dtype) for each in tensors)


def _places(torch: Any, optimizer: Any) -> Hashable:
    """Where weights and state lie that an update writes, and all settings that it goes by.

    None where an update does more than that: a first one makes the state, which a graph would do
    again at each replay, and a setting that is a tensor may change without being another.
    """
    found: list[Hashable] = []
    states, is_tensor = optimizer.state, torch.is_tensor
    for group in optimizer.param_groups:
        settings = [group.get(name) for name in optimizer.defaults if name != "lr"]
        settings = [tuple(each) if isinstance(each, list) else each for each in settings]
        parts = [part for each in settings for part in (each if type(each) is tuple else (each,))]
        if any(map(is_tensor, [*parts, group["lr"]])):
            return None
        found += settings
        # All others keep something; SGD alone cannot be told that it is captured.
        keeps = "capturable" in group or group.get("momentum")
        for p in group["params"]:
            if p.grad is None:
                found.append(None)
                continue
            state = [each.data_ptr() for each in states.get(p, {}).values() if is_tensor(each)]
            if keeps and not state:
                return None
            found += (p.data_ptr(), p.shape, p.stride(), p.dtype, *state)
    return tuple(found)
