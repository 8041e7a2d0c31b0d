"""Cross-entropy over many classes computed a few rows at a time.

With a vocabulary of fifty thousand words the logits are often the largest tensor of a model, and
torch makes several copies of them in float32 to compute a loss. In chunks there are none. The
gradient is the same up to rounding; what the script does with the logits besides is left alone.
"""

from __future__ import annotations

import inspect
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import NOT_LOOKED, Effect, Expectation, Group, Lever, Receipt, Seen, refuse
from hotloop.levers.chunks import Terms, cross_entropy

if TYPE_CHECKING:
    from hotloop.seams import Seams

ON_GPU, ON_CPU = 2**24, 2**20
"""Logits a chunk: enough to occupy a GPU, and few enough for the caches of a CPU."""
WIDE_COPIES = 3
"""That torch has at the worst moment: the logarithms, their gradient and that of the logits."""
OWN_COPIES = 2
"""That are left: the logits and their gradient, in the logits' own format."""
LARGE = 0.05
"""Of the peak memory: what is saved must be worth a trial."""
FLOAT32 = 4


@dataclass
class ChunkedLoss(Lever):
    name = "chunked_loss"
    summary = "cross-entropy over many classes a few rows at a time"
    group = Group.MEMORY
    effect = Effect.SAME_MATH
    not_for_memory = ""
    conflicts = ("compile_loss",)  # a loss is computed in one way

    chunk: int = ON_GPU
    """Logits computed at a time. A loss of fewer than two chunks is left alone."""

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._original: Any = None
        self._compute: Any = None
        self._signature: Any = None
        self._chunked = self._saved = 0
        self._left: Counter[str] = Counter()
        """Losses that torch computes as ever, by the reason."""

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{"chunk": ON_GPU if seen.on_gpu else ON_CPU}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        looked = seen.inspection
        if looked is None:
            return refuse(f"the job's losses are not known: {NOT_LOOKED}")
        losses = [one for one in looked.losses if one.function == "cross_entropy"]
        if not losses:
            return refuse("no cross-entropy was seen")
        copy = max(_wide(one.itemsize) * one.elements / one.calls for one in losses)
        peak = seen.measurement.memory.peak or 0
        part = copy / peak if peak else 0.0
        if part < LARGE:
            return refuse(f"a copy of the logits in float32 is {part:.1%} of the job's memory")
        if seen.objective == "memory":
            return Expectation(min(part, 1.0), of_memory=True)
        # What is no longer written and read, of all that a step writes and reads.
        every = looked.operators.bytes if looked.operators else 0.0
        spared = sum(WIDE_COPIES * _wide(one.itemsize) * one.elements for one in losses)
        share = min(spared / every, 1.0) if every else 0.0
        return Expectation(share * seen.share("forward", "backward"))

    def problem(self) -> str:
        return "" if self.chunk > 0 else "a chunk has at least one logit"

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        self._original = torch.nn.functional.cross_entropy
        self._signature = inspect.signature(self._original)
        self._compute = cross_entropy(torch)
        seams.loss.before.append(self._replace)

    def receipt(self) -> Receipt:
        if self._chunked:
            left = self._left.total()
            return self.applied(losses=self._chunked, bytes_saved=self._saved, left_alone=left)
        if not self._left:
            return self.not_applied("no cross-entropy was computed outside of compiled code")
        return self.not_applied(f"no loss was cut: {self._left.most_common(1)[0][0]}")

    def _replace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if kwargs["by"] is self._original:
            kwargs["by"] = self._loss

    def _loss(self, *args: Any, **kwargs: Any) -> Any:
        try:
            given = self._signature.bind(*args, **kwargs)
        except TypeError:
            return self._original(*args, **kwargs)  # which says what is wrong with them
        given.apply_defaults()
        reason = self._why_not(**given.arguments)
        if reason:
            self._left[reason] += 1
            return self._original(*args, **kwargs)
        return self._in_chunks(**given.arguments)

    def _why_not(
        self,
        input: Any,
        target: Any,
        weight: Any,
        size_average: Any,
        reduce: Any,
        reduction: str,
        ignore_index: int,
        label_smoothing: float,
    ) -> str:
        """Whatever is not plainly ours to compute is torch's: its errors are its own, too."""
        torch = self._torch
        tensors = [one for one in (input, target, weight) if one is not None]
        if any(type(one) not in (torch.Tensor, torch.nn.Parameter) for one in tensors):
            return "it is part of compiled code, or its tensors are of a kind of their own"
        if _is_transformed(torch):
            return "it is computed under torch.func"
        if target.is_floating_point():
            return "its targets are probabilities of classes"
        if input.numel() < 2 * self.chunk:
            return "its logits are too few"
        if size_average is not None or reduce is not None:
            return "it is called in a way that is out of date"
        if weight is not None and (weight.requires_grad or weight.shape != input.shape[1:2]):
            return "its weights are learned, or do not fit its classes"
        fits = input.dim() > 1 and target.shape == (input.shape[0], *input.shape[2:])
        known = reduction in ("mean", "sum", "none") and 0.0 <= label_smoothing <= 1.0
        if not fits or not known or not input.is_floating_point():
            return "its arguments do not fit each other"
        if target.dtype is not torch.int64 or len({one.device for one in tensors}) > 1:
            return "its targets are of another type, or on another device"
        return "" if _as_rows(input) is not None else "its logits lie scattered in memory"

    def _in_chunks(
        self,
        input: Any,
        target: Any,
        weight: Any,
        reduction: str,
        ignore_index: int,
        label_smoothing: float,
        **older: Any,
    ) -> Any:
        torch = self._torch
        wide = torch.float64 if input.dtype is torch.float64 else torch.float32
        # Where there is an autocast, torch computes this loss in float32 and returns it so.
        is_cast = torch.is_autocast_enabled(input.device.type)
        result = wide if is_cast else input.dtype
        terms = Terms(ignore_index, reduction, label_smoothing, self.chunk, wide, result)
        self._chunked += 1
        copies = WIDE_COPIES * result.itemsize - OWN_COPIES * input.dtype.itemsize
        self._saved = max(self._saved, copies * input.numel())
        weights = None if weight is None else weight.to(wide)
        rows = target if target.dim() == 1 else target.reshape(len(target), -1)
        return _shaped(self._compute(_as_rows(input), rows, weights, terms), target, reduction)


def _wide(itemsize: int) -> int:
    """Bytes of a number in the copies, of logits of so many."""
    return max(itemsize, FLOAT32)


def _shaped(loss: Any, target: Any, reduction: str) -> Any:
    return loss.reshape(target.shape) if reduction == "none" else loss


def _as_rows(logits: Any) -> Any:
    """(rows, classes) or (rows, classes, positions), without a copy. None: not without one.

    Two dimensions stay two: along the last one a CPU is several times as fast.
    """
    if logits.dim() == 2:
        return logits
    try:
        return logits.view(*logits.shape[:2], -1)
    except RuntimeError:
        return None


def _is_transformed(torch: Any) -> bool:
    """Under vmap or torch.func.grad, where a function of autograd needs more than ours has."""
    functorch = getattr(torch._C, "_functorch", None)
    top = getattr(functorch, "peek_interpreter_stack", None)
    return top is not None and top() is not None
