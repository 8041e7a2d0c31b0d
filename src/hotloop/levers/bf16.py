"""Matrix products and convolutions in bfloat16, by autocast; weights stay as they are.

Opened where the script has no autocast, steered where it has one: see `autocasting`. There is no
gradient scaling: bfloat16 has the range of float32.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotloop.levers.autocasting import LOWER, Autocasting
from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse

if TYPE_CHECKING:
    from hotloop.seams import Seams

CPU_INSTRUCTIONS = frozenset({"amx_bf16", "avx512_bf16"})
NO_HARDWARE = "this GPU has no bfloat16"


@dataclass
class Bf16(Lever):
    name = "bf16"
    summary = "matrix products and convolutions in bfloat16, by autocast"
    group = Group.PRECISION
    effect = Effect.LOWER_PRECISION
    not_for_memory = ""
    mantissa = 7

    def __post_init__(self) -> None:
        self._cast = Autocasting("bfloat16", _lacking)

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        inventory, software = seen.measurement.inventory, seen.measurement.software
        formats = {dtype for model in inventory.models for dtype in model.dtypes}
        for found in LOWER:
            if inventory.precision.autocast == found or formats == {found}:
                return refuse(f"the script already computes in {found}")
        if software.device == "cpu" and not CPU_INSTRUCTIONS & cpu_flags():
            return refuse("bfloat16 on this CPU is emulated")
        if software.bfloat16 is False:
            return refuse(NO_HARDWARE)
        return Expectation(seen.share("forward", "backward") / 2)

    def apply(self, torch: Any, seams: Seams) -> None:
        self._cast.attach(torch, seams)
        _let_numpy_read(torch)

    def receipt(self) -> Receipt:
        cast = self._cast
        if not cast.took_effect:
            return self.not_applied(cast.why_not())
        return self.applied(
            products_in_bf16=cast.low,
            products=cast.products,
            passes=cast.passes,
            own_autocast=cast.has_own,
        )


def _let_numpy_read(torch: Any) -> None:
    """numpy knows no bfloat16. A script that hands it a result now and then expects float32."""
    numpy = torch.Tensor.numpy
    if hasattr(numpy, "widens"):
        return

    @functools.wraps(numpy)
    def widened(self: Any, *args: Any, **kwargs: Any) -> Any:
        known = self.float() if self.dtype is torch.bfloat16 else self
        return numpy(known, *args, **kwargs)

    widened.widens = True  # type: ignore[attr-defined]
    torch.Tensor.numpy = widened


def cpu_flags() -> frozenset[str]:
    """Of the instruction set, as Linux lists it; nothing elsewhere."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return frozenset()
    flags = re.search(r"^flags\s*:(.*)$", text, re.MULTILINE)
    return frozenset(flags[1].split()) if flags else frozenset()


def _lacking(torch: Any, device: str) -> str:
    has = device != "cuda" or torch.cuda.is_bf16_supported(including_emulation=False)
    return "" if has else NO_HARDWARE
