"""Which kernel computes torch's fused attention: some that torch would choose from are off.

cuDNN's attention builds a plan for every shape it meets: about 55 ms on an H200. Where lengths
change from step to step, that is what the step consists of.

That attention ran, and in which kernel, is read off the autograd graph of the first losses, and off
the code that torch.compile generated. Nothing is wrapped: a wrapper around the function would be
traced into the graphs of torch.compile, and break them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import NOT_LOOKED, Effect, Expectation, Group, Lever, Receipt, Seen, refuse

if TYPE_CHECKING:
    from hotloop.seams import Seams

OFF = {"no_cudnn": ("cudnn",), "flash": ("cudnn", "efficient"), "efficient": ("cudnn", "flash")}
"""What each order does without. The plain computation is always there for what is left."""
SWITCHES = {"cudnn": "cudnn_sdp", "flash": "flash_sdp", "efficient": "mem_efficient_sdp"}
CUDNN = "_scaled_dot_product_cudnn_attention"
TAG = "TORCH_COMPILE_CACHE_KEY_TAG"
LOOKS = 3
"""Backward passes that are looked at. What a model computes it computes in every step."""
MOST = 0.5
"""Of the model's own passes: where shapes change, planning is most of them. A trial can tell."""
_NODE = re.compile(r"ScaledDotProduct(Flash|Efficient|Cudnn)AttentionBackward")
_CALL = re.compile(r"_scaled_dot_product_(flash|efficient|cudnn)_attention\.default")


@dataclass
class SdpaBackend(Lever):
    name = "sdpa_backend"
    summary = "fused attention without the kernels that are slow here"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    not_for_memory = "the fused kernels of attention take as much memory, one as the other"

    order: str = "no_cudnn"
    """"no_cudnn"; "flash" or "efficient": that kernel, and no other fused one."""

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._kernels: set[str] = set()
        self._looks = self._steps = 0
        self._held = True

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        """Without cuDNN torch chooses flash, then the efficient one: what the others force."""
        return [{"order": "no_cudnn"}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        operators = seen.inspection.operators if seen.inspection else None
        if not seen.on_gpu:
            return refuse("on a CPU there is one kernel of fused attention")
        if operators is None:
            return refuse(f"the job's attention is not known: {NOT_LOOKED}")
        if CUDNN not in operators.by_name:
            return refuse("cuDNN's attention was not seen to run")
        return Expectation(seen.share("forward", "backward") * MOST)

    def problem(self) -> str:
        if self.order in OFF:
            return ""
        return f"there is no order {self.order!r}: it is one of {', '.join(OFF)}"

    def environment(self) -> dict[str, str]:
        """torch.compile's cache does not know of the switches: it would hand out another's code."""
        own = [os.environ[TAG]] if os.environ.get(TAG) else []
        return {TAG: "-".join([*own, f"sdpa_{self.order}"])}

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        for kernel in OFF[self.order]:
            getattr(torch.backends.cuda, f"enable_{SWITCHES[kernel]}")(False)
        seams.backward.before.append(self._look)
        seams.step.after.append(self._check)

    def receipt(self) -> Receipt:
        if not self._torch.cuda.is_initialized():
            return self.not_applied("the job does not use a GPU")
        if not self._steps:
            return self.not_applied("no optimizer stepped")
        if not self._held:
            return self.not_applied("the script turned a kernel on again")
        kernels = self._kernels | compiled()
        if not kernels:
            return self.not_applied("no fused attention was seen to run")
        if wrong := sorted(kernels & set(OFF[self.order])):
            return self.not_applied(f"attention ran in the kernel {wrong[0]!r} all the same")
        return self.applied(kernels=", ".join(sorted(kernels)), steps=self._steps)

    def _look(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._looks < LOOKS:
            self._looks += 1
            losses = args[0] if args else kwargs.get("tensors", ())
            self._kernels |= differentiated([losses] if hasattr(losses, "grad_fn") else losses)

    def _check(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        cuda = self._torch.backends.cuda
        self._steps += 1
        on = [getattr(cuda, f"{SWITCHES[kernel]}_enabled")() for kernel in OFF[self.order]]
        self._held = self._held and not any(on)


def differentiated(losses: Iterable[Any]) -> set[str]:
    """The kernels of attention that autograd is about to undo; those of a CPU do not count."""
    pending = [loss.grad_fn for loss in losses]
    met: set[Any] = set()
    found = set()
    while pending:
        node = pending.pop()
        if node is None or node in met:
            continue
        met.add(node)
        if match := _NODE.match(node.name()):
            found.add(match[1].lower())
        pending += [function for function, _ in node.next_functions]
    return found


def compiled() -> set[str]:
    """The kernels of attention that compiled code calls: all that it is, it says in its source."""
    cache = getattr(sys.modules.get("torch._inductor.codecache"), "PyCodeCache", None)
    found: set[str] = set()
    for module in getattr(cache, "modules", ()):
        try:
            source = Path(module.__file__).read_text(encoding="utf-8")
        except (OSError, TypeError, ValueError):
            continue
        found.update(_CALL.findall(source))
    return found
