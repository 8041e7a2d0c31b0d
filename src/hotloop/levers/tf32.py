"""Matrix products of 32-bit floats on tensor cores, with a 10-bit mantissa."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse

if TYPE_CHECKING:
    from hotloop.seams import Seams

FIRST_WITH_TF32 = (8, 0)
"""Compute capability of Ampere."""


@dataclass
class Tf32(Lever):
    name = "tf32"
    summary = "matrix products of float32 in TF32 on the tensor cores"
    group = Group.PRECISION
    effect = Effect.LOWER_PRECISION
    not_for_memory = "numbers stay as large: only products become faster"
    mantissa = 10

    def __post_init__(self) -> None:
        self._torch: Any = None

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        precision = seen.measurement.inventory.precision
        if seen.measurement.software.device == "cpu":
            return refuse("TF32 is a format of NVIDIA's tensor cores")
        if precision.tf32_matmul:
            return refuse("the script has already turned it on")
        if precision.autocast in ("bfloat16", "float16"):
            return refuse(f"the script already computes in {precision.autocast}")
        return Expectation(seen.share("forward", "backward") / 2)

    def apply(self, torch: Any, seams: Seams) -> None:
        """At once. The older setting: a script that reads it fails after the newer one was used."""
        self._torch = torch
        torch.backends.cuda.matmul.allow_tf32 = True
        torch.backends.cudnn.allow_tf32 = True

    def receipt(self) -> Receipt:
        torch = self._torch
        if not torch.cuda.is_initialized():
            return self.not_applied("the job does not use a GPU")
        if torch.cuda.get_device_capability() < FIRST_WITH_TF32:
            return self.not_applied("this GPU has no TF32")
        if not torch.backends.cuda.matmul.allow_tf32:
            return self.not_applied("the script turned it off again")
        return self.applied(matmul=True)
