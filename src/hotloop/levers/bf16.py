"""Matrix products and convolutions in bfloat16, by autocast; weights stay as they are.

Where the script has an autocast of its own, that one is turned to bfloat16. Where it has none, one
is opened at the model's training call and closed when the loss is differentiated. What the script
computes without gradients is left alone, and so is an autocast it has switched off inside another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse

if TYPE_CHECKING:
    from hotloop.seams import Seams

CPU_INSTRUCTIONS = frozenset({"amx_bf16", "avx512_bf16"})
LOWER = ("bfloat16", "float16")
PRODUCT = re.compile(
    r"Addmm|Mm|Bmm|Baddbmm|Addbmm|Addmv|Mv|(Mkldnn)?Linear|\w*Convolution|ScaledDotProduct|\w*Rnn"
)
"""Nodes of the autograd graph, as torch names them, that autocast computes in the lower format."""
MOST_NODES = 20_000
LOOKS = 5
"""Backward passes whose graph is looked at for evidence, at most."""


@dataclass
class Bf16(Lever):
    name = "bf16"
    summary = "matrix products and convolutions in bfloat16, by autocast"
    group = Group.PRECISION
    effect = Effect.LOWER_PRECISION
    mantissa = 7

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._context: Any = None
        """Our own autocast, while it is open."""
        self._was: Any = None
        """The format of the script's own that is being entered."""
        self._has_own = False
        self._suspended = self._inside = False
        self._found = self._problem = ""
        self._steered = self._opened = self._looks = self._low = self._products = 0

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        inventory = seen.measurement.inventory
        formats = {dtype for model in inventory.models for dtype in model.dtypes}
        for found in LOWER:
            if inventory.precision.autocast == found or formats == {found}:
                return refuse(f"the script already computes in {found}")
        if seen.measurement.software.device == "cpu" and not CPU_INSTRUCTIONS & cpu_flags():
            return refuse("bfloat16 on this CPU is emulated")
        return Expectation(seen.share("forward", "backward") / 2)

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        seams.autocast.before.append(self._steer)
        seams.autocast.after.append(self._restore)
        seams.model.before.append(self._open)
        seams.model.after.append(self._resume)
        for seam in (seams.backward, seams.grad):
            seam.before.append(self._differentiate)
        seams.step.before.append(self._close)

    def receipt(self) -> Receipt:
        passes = self._steered + self._opened
        if self._low:
            return self.applied(
                products_in_bf16=self._low,
                products=self._products,
                passes=passes,
                own_autocast=self._has_own,
            )
        if passes:
            return self.not_applied("no matrix product was computed in bfloat16")
        if self._found:
            return self.not_applied(f"the script already computes in {self._found}")
        return self.not_applied(self._problem or "no model was trained under it")

    def _steer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Only the outermost of those switched on: what is inside one, its author chose."""
        torch, context = self._torch, args[0]
        if context is self._context or not context._enabled or torch.compiler.is_compiling():
            return
        if torch.is_autocast_enabled(context.device) or not torch.is_grad_enabled():
            return
        self._has_own = True
        if context.fast_dtype is not torch.float32:
            self._found = _name(context.fast_dtype)
        elif self._is_supported(context.device):
            self._steered += 1
            self._was, context.fast_dtype = context.fast_dtype, torch.bfloat16

    def _restore(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        """It has been entered: the script may enter the same object again, to evaluate."""
        if self._was is not None:
            args[0].fast_dtype, self._was = self._was, None

    def _open(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        torch, self._inside = self._torch, True
        if not torch.is_grad_enabled():
            self._suspend()
        elif self._context is None and not self._has_own:
            weight = next(args[0].parameters(), None)
            if weight is None or torch.is_autocast_enabled(weight.device.type):
                return
            if _name(weight.dtype) in LOWER:
                self._found = _name(weight.dtype)
            elif self._is_supported(weight.device.type):
                self._opened += 1
                self._context = torch.autocast(weight.device.type, dtype=torch.bfloat16)
                self._context.__enter__()

    def _suspend(self) -> None:
        """A target network, say, between the model's call and its loss."""
        if self._context is not None:
            self._torch.set_autocast_enabled(self._context.device, False)
            self._suspended = True

    def _resume(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._inside = False
        if self._suspended:
            self._suspended = False
            self._torch.set_autocast_enabled(self._context.device, True)

    def _differentiate(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._inside or self._torch.compiler.is_compiling() or _is_traced(args):
            return  # the model differentiates something itself, or torch does, to compile it
        if self._looks < LOOKS and not self._low and (self._opened or self._steered):
            self._looks += 1
            self._look(args[0] if args else None)
        self._close(args, kwargs)

    def _close(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The loss is inside: some losses fail on the model's bfloat16 output outside."""
        if self._context is not None:
            context, self._context, self._suspended = self._context, None, False
            context.__exit__(None, None, None)
            self._torch.clear_autocast_cache()  # of weights that are about to change

    def _look(self, outputs: Any) -> None:
        """At the graph that is about to be differentiated: it says what was really computed."""
        low = self._torch.bfloat16
        for node in _nodes(outputs):
            is_compiled = node.name() == "CompiledFunctionBackward"
            if is_compiled or PRODUCT.match(node.name()):
                self._products += 1
                made = [each.dtype for each in node._input_metadata]
                if is_compiled:  # a whole graph: what it keeps for the way back tells more
                    made += [each.dtype for each in node.saved_tensors if each is not None]
                self._low += low in made

    def _is_supported(self, device: str) -> bool:
        cuda = self._torch.cuda
        if device == "cuda" and not cuda.is_bf16_supported(including_emulation=False):
            self._problem = "this GPU has no bfloat16"
        return not self._problem


def cpu_flags() -> frozenset[str]:
    """Of the instruction set, as Linux lists it; nothing elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return frozenset()
    flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    return frozenset(flags[1].split()) if flags else frozenset()


def _is_traced(args: tuple[Any, ...]) -> bool:
    """Stand-ins for tensors: not every torch says that it is compiling when it uses them."""
    outputs = args[0] if args else None
    first = outputs[0] if isinstance(outputs, list | tuple) and outputs else outputs
    return type(first).__name__ in ("FakeTensor", "FunctionalTensor")


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")


def _nodes(outputs: Any) -> Iterator[Any]:
    tensors = outputs if isinstance(outputs, list | tuple) else [outputs]
    pending = [getattr(tensor, "grad_fn", None) for tensor in tensors]
    seen: set[Any] = set()
    while pending and len(seen) < MOST_NODES:
        node = pending.pop()
        if node is not None and node not in seen:
            seen.add(node)
            pending += [following for following, _ in node.next_functions]
            yield node
