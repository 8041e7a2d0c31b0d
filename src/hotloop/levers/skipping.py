"""An optimizer's step, left out when its gradients are not finite.

A fused kernel is told on the device, and leaves the step out by itself. For any other optimizer the
device is asked, as torch's own gradient scaler asks it, and gradients are taken away for as long as
it steps: a parameter without a gradient is left alone, with all that is known of it. So whatever
counts steps, such as a schedule, counts this one.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotloop.levers.scaling import Scaler
    from hotloop.seams import Seams

FLAG = "found_inf"
"""Under which torch's gradient scaler tells a fused optimizer of an overflow, and under which
whoever examines a step learns that it was left out."""
CLOSURE = "the optimizer computes gradients itself, by a closure, and could not leave a step out"


class Skipping:
    def __init__(self, stop: Callable[[str], None]) -> None:
        """`stop` is told why steps cannot be left out."""
        self.steps = 0
        self.is_over = False
        """Gradients are no longer scaled: what was found last counts once more, and never again."""
        self._stop = stop
        self._flags: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._nobody: Any = None
        self._told: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
        self._stepped: weakref.WeakSet[Any] = weakref.WeakSet()
        """Optimizers that have really made a step."""
        self._taken: list[Any] = []
        self._aside: list[tuple[Any, Any]] = []
        self._scaler: Scaler | None = None
        self._skipped: Any = None

    def attach(self, seams: Seams) -> None:
        seams.step.before.append(self._step)
        seams.step.after.append(self._has_stepped)

    @property
    def skipped(self) -> int:
        """Waits for the device."""
        return 0 if self._skipped is None else int(self._skipped)

    def flag(self, optimizer: Any, scaler: Scaler) -> Any:
        """Of gradients that an optimizer would step by: zero, to be set to one on the device."""
        if self._scaler is None:
            self._scaler = scaler
            self._skipped, self._nobody = scaler.number(), scaler.number()
        if optimizer is None:
            return self._nobody
        if optimizer not in self._flags:
            self._flags[optimizer] = scaler.number()
        return self._flags[optimizer].zero_()

    def taken(self) -> list[Any]:
        """The flags of all steps since this was last asked."""
        flags, self._taken = self._taken, []
        return flags

    def _step(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        optimizer = args[0]
        told = self._told.pop(optimizer, None)
        if told is not None and getattr(optimizer, FLAG, None) is told:
            delattr(optimizer, FLAG)
        flag = self._flags.get(optimizer)
        given = [each for each in (*args, *kwargs.values()) if each is not optimizer]
        if any(map(callable, given)):
            self._stop(CLOSURE)
        elif flag is not None:
            self._judge(optimizer, flag)
            if self.is_over:
                del self._flags[optimizer]

    def _judge(self, optimizer: Any, flag: Any) -> None:
        if self._scaler is not None and len(self._flags) > 1:
            # Clipped by the norm of all, one optimizer's overflow becomes every other's.
            self._scaler.check([gradient for _, gradient in _gradients(optimizer)], flag)
        self.steps += 1
        self._skipped += flag
        self._taken.append(flag)
        # A first one makes its state by it: fused SGD would keep what it has not written.
        if _takes_flags(optimizer) and optimizer in self._stepped:
            self._tell(optimizer, flag)
        elif flag.item():
            self._aside = _gradients(optimizer)
            for parameter, _ in self._aside:
                parameter.grad = None
        else:
            self._stepped.add(optimizer)

    def _has_stepped(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        for parameter, gradient in self._aside:
            parameter.grad = gradient
        if self._aside:
            self._tell(args[0], self._taken[-1])
        self._aside = []

    def _tell(self, optimizer: Any, flag: Any) -> None:
        """Until its next step: whoever examines this one asks after us."""
        self._told[optimizer] = flag
        setattr(optimizer, FLAG, flag)


def _gradients(optimizer: Any) -> list[tuple[Any, Any]]:
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    return [(p, p.grad) for p in parameters if p.grad is not None]


def _takes_flags(optimizer: Any) -> bool:
    """Those of torch alone: what others expect beside it is not known."""
    fused = getattr(optimizer, "_step_supports_amp_scaling", False)
    return bool(fused) and type(optimizer).__module__.startswith("torch.optim.")
