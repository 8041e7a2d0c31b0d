"""A lower number format for a script's products, by autocast from outside.

Where the script has an autocast of its own, that one is turned to the format. Where it has none,
one is opened at the model's training call and closed when the loss is differentiated. What the
script computes without gradients is left alone, and so is an autocast it has switched off inside
another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotloop.seams import Seams

LOWER = ("bfloat16", "float16")
PRODUCT = re.compile(
    r"Addmm|Mm|Bmm|Baddbmm|Addbmm|Addmv|Mv|(Mkldnn)?Linear|\w*Convolution|ScaledDotProduct|\w*Rnn"
)
"""Nodes of the autograd graph, as torch names them, that autocast computes in the lower format."""
MOST_NODES = 20_000
FEW = 4
"""One of so many passes at the least: some losses have no model in them."""
LOOKS = 5
"""Backward passes whose graph is looked at for evidence, at most."""

Lacking = Callable[[Any, str], str]
"""Why torch cannot compute in the format on a kind of device; empty when it can."""


class Autocasting:
    def __init__(self, format: str, lacking: Lacking = lambda torch, device: "") -> None:
        self.format = format
        self.found = ""
        """Another low format, or the same, that the script has chosen itself."""
        self.problem = ""
        """Why nothing is opened or steered any more."""
        self.has_own = False
        self.steered = self.opened = self.low = self.products = 0
        self.differentiated = 0
        """Passes of a model. One may be differentiated several times, and counts once."""
        self._called = False
        self._lacking = lacking
        self._torch: Any = None
        self._low_type: Any = None
        self._context: Any = None
        """Our own autocast, while it is open."""
        self._was: Any = None
        """The format of the script's own that is being entered."""
        self._suspended = self._inside = False
        self._looks = 0

    @property
    def passes(self) -> int:
        return self.steered + self.opened

    @property
    def took_effect(self) -> bool:
        """Seen in the first passes, and not lost afterwards."""
        return bool(self.low) and FEW * self.passes >= self.differentiated

    def attach(self, torch: Any, seams: Seams) -> None:
        self._torch, self._low_type = torch, getattr(torch, self.format)
        _keep_compiled_code_apart(torch, self.format)
        seams.autocast.before.append(self._steer)
        seams.autocast.after.append(self._restore)
        # A discriminator that joins in later is given what the others have made in the format.
        for models in (seams.model, seams.late_model):
            models.before.append(self._open)
            models.after.append(self._resume)
        for seam in (seams.backward, seams.grad):
            seam.before.append(self._differentiate)
        seams.step.before.append(lambda args, kwargs: self._close())

    def stop(self, problem: str) -> None:
        self.problem = self.problem or problem
        self._close()

    def why_not(self) -> str:
        """Asked where nothing was computed in the format."""
        if self.low:
            of_all = f"{self.passes} of {self.differentiated} passes"
            return f"only {of_all} were computed in {self.format}"
        if self.passes:
            return f"no matrix product was computed in {self.format}"
        if self.found:
            return f"the script already computes in {self.found}"
        return self.problem or "no model was trained under it"

    def _steer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Only the outermost of those switched on: what is inside one, its author chose."""
        torch, context = self._torch, args[0]
        if context is self._context or not context._enabled or torch.compiler.is_compiling():
            return
        if torch.is_autocast_enabled(context.device) or not torch.is_grad_enabled():
            return
        if torch._C._current_graph_task_id() != -1:
            return  # torch's own, to compute something again on the way back as it was
        self.has_own = True
        if context.fast_dtype is not torch.float32:
            self.found = _name(context.fast_dtype)
        elif self._is_supported(context.device):
            self.steered += 1
            self._was, context.fast_dtype = context.fast_dtype, self._low_type

    def _restore(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        """It has been entered: the script may enter the same object again, to evaluate."""
        if self._was is not None:
            args[0].fast_dtype, self._was = self._was, None

    def _open(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        torch, self._inside = self._torch, True
        self._called = self._called or torch.is_grad_enabled()
        if not torch.is_grad_enabled():
            self._suspend()
        elif self._context is None and not self.has_own:
            weight = next(args[0].parameters(), None)
            if weight is None or torch.is_autocast_enabled(weight.device.type):
                return
            if _name(weight.dtype) in LOWER:
                self.found = _name(weight.dtype)
            elif self._is_supported(weight.device.type):
                self.opened += 1
                self._context = torch.autocast(weight.device.type, dtype=self._low_type)
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
        if self._inside:
            return  # the model differentiates something itself
        self.differentiated += self._called
        self._called = False
        if self._looks < LOOKS and not self.low and self.passes:
            self._looks += 1
            self._look(args[0] if args else None)
        self._close()

    def _close(self) -> None:
        """The loss is inside: some losses fail on the model's low output outside."""
        if self._context is not None:
            context, self._context, self._suspended = self._context, None, False
            context.__exit__(None, None, None)
            self._torch.clear_autocast_cache()  # of weights that are about to change

    def _look(self, outputs: Any) -> None:
        """At the graph that is about to be differentiated: it says what was really computed."""
        for node in nodes(outputs):
            is_compiled = node.name() == "CompiledFunctionBackward"
            if is_compiled or PRODUCT.match(node.name()):
                self.products += 1
                made = [each.dtype for each in node._input_metadata]
                if is_compiled:  # a whole graph: what it keeps for the way back tells more
                    made += [each.dtype for each in node.saved_tensors if each is not None]
                self.low += self._low_type in made

    def _is_supported(self, device: str) -> bool:
        self.problem = self.problem or self._lacking(self._torch, device)
        return not self.problem


def _keep_compiled_code_apart(torch: Any, format: str) -> None:
    """From what torch has compiled in another process, and in another format.

    Before 2.13 it looks kept code up by whether there is an autocast, not by its format: one in
    float32, as scripts have it, was handed the code for bfloat16.
    """
    config = getattr(torch.compiler, "config", None)
    if config is not None and hasattr(config, "cache_key_tag"):
        config.cache_key_tag += f"autocast-{format}"


def nodes(outputs: Any) -> Iterator[Any]:
    """Of the autograd graph that leads to these tensors, each once."""
    tensors = outputs if isinstance(outputs, list | tuple) else [outputs]
    pending = [getattr(tensor, "grad_fn", None) for tensor in tensors]
    seen: set[Any] = set()
    while pending and len(seen) < MOST_NODES:
        node = pending.pop()
        if node is not None and node not in seen:
            seen.add(node)
            pending += [following for following, _ in node.next_functions]
            yield node


def _name(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
