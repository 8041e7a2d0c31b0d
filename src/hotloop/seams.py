"""The named points in a running job where something may attach.

A seam knows who wants to hear of it, not how it is reached: the driver does that. A seam that
nobody listens to is not intercepted at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Before = Callable[[tuple[Any, ...], dict[str, Any]], None]
"""Called with the arguments of the call that is about to happen. Those by name may be changed."""
After = Callable[[tuple[Any, ...], Any, int], None]
"""Called with its arguments, its result (None when it raised) and when it began, in nanoseconds.

One call tells of a whole span: between two calls into torch Python runs with cold caches, and each
listener costs ten times what a benchmark in a loop shows.
"""


@dataclass
class Seam:
    before: list[Before] = field(default_factory=list)
    after: list[After] = field(default_factory=list)
    at_once: bool = False
    """Whoever listens must hear of the very first call, at whatever cost."""

    @property
    def is_used(self) -> bool:
        return bool(self.before or self.after)

    def silence(self) -> None:
        self.before.clear()
        self.after.clear()


@dataclass
class Seams:
    loop: Seam = field(default_factory=Seam)
    """A loop of ours begins: (loop). Its sizes may be changed before; it is whole afterwards."""
    loader_built: Seam = field(default_factory=Seam)
    """A loader is built: (loader). Its settings come by name, before, and may be changed."""
    loader: Seam = field(default_factory=Seam)
    """A loader begins a pass: (loader) -> iterator."""
    batch: Seam = field(default_factory=Seam)
    """A loader is asked for its next batch: (iterator) -> batch."""
    move: Seam = field(default_factory=Seam)
    """A tensor on the host moves to a device: (tensor, …) -> tensor.

    What moves it comes by name, before, and may be changed: by.
    """
    model: Seam = field(default_factory=Seam)
    """A root module is called: (module, …) -> output."""
    late_model: Seam = field(default_factory=Seam)
    """A model is called that training came to after its first steps: (module, …) -> output."""
    compiling: Seam = field(default_factory=Seam)
    """A model is about to be compiled by the compile lever: (module).

    By name, and may be changed: later, for another call to come first; and around, which is given
    the module's plain call and what compiles a function, and returns what to call instead.
    """
    captured: Seam = field(default_factory=Seam)
    """A graph was captured, to be compiled by the compile lever: (captured) -> compiled."""
    loss: Seam = field(default_factory=Seam)
    """A loss function of torch's is called: (input, target, …) -> loss.

    What computes it comes by name, before, and may be changed: by.
    """
    backward: Seam = field(default_factory=Seam)
    """A loss is differentiated by backward(): (tensors, …)."""
    grad: Seam = field(default_factory=Seam)
    """A loss is differentiated by autograd.grad(): (outputs, …)."""
    retained: Seam = field(default_factory=Seam)
    """A result whose gradient is to be kept, by retain_grad(): (tensor)."""
    scale: Seam = field(default_factory=Seam)
    """A gradient scaler scales a loss: (scaler, loss) -> scaled loss."""
    scaler_step: Seam = field(default_factory=Seam)
    """A gradient scaler steps an optimizer, or skips the step: (scaler, optimizer, …)."""
    clip: Seam = field(default_factory=Seam)
    """Gradients are clipped by one of torch's functions: (parameters, …).

    What clips them comes by name, before, and may be changed: by.
    """
    optimizer: Seam = field(default_factory=Seam)
    """An optimizer is built, as far as the base class goes: (optimizer, …)."""
    autocast: Seam = field(default_factory=Seam)
    """The job enters an autocast of its own: (context)."""
    zero_grad: Seam = field(default_factory=Seam)
    """An optimizer or a module clears its gradients: (that, …)."""
    step: Seam = field(default_factory=Seam)
    """An optimizer steps: (optimizer, …)."""
    update: Seam = field(default_factory=Seam)
    """Inside that: what one of torch's optimizers whose update can be captured in a graph does to
    the weights, and its closure: (optimizer, …).

    What updates them comes by name, before, and may be changed: by.
    """
    threads: Seam = field(default_factory=Seam)
    """The number of threads that operators compute with is set. It comes by name: threads."""

    def all(self) -> list[Seam]:
        return list(vars(self).values())

    @contextmanager
    def unwatched(self) -> Iterator[None]:
        """For as long as something is recorded rather than done: who only watches hears nothing.

        Watchers live in the runtime; levers, which change what passes, must still do so.
        """
        lists: list[list[Any]] = [each for seam in self.all() for each in (seam.before, seam.after)]
        kept = [list(each) for each in lists]
        for each in lists:
            each[:] = [listener for listener in each if not _watches(listener)]
        try:
            yield
        finally:
            for each, before in zip(lists, kept, strict=True):
                each[:] = before

    def silence(self) -> None:
        """In a process forked off the job, where nothing is to be recorded."""
        for seam in self.all():
            seam.silence()


def _watches(listener: Any) -> bool:
    owner = getattr(listener, "__self__", listener)
    module = getattr(owner, "__module__", None) or type(owner).__module__
    return str(module).startswith("hotloop.runtime.")
