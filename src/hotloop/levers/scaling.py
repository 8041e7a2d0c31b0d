"""Gradients of float16 products, scaled on their way back so that small ones do not become zero.

The rules are those of torch's own gradient scaler, and so are the operators: the scale grows after
many steps without overflow, and is halved after one. Nothing here waits for the device. All scales
are powers of two, so that multiplying by one and dividing again changes no bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

START = 2.0**16
GROWTH, BACKOFF, INTERVAL = 2.0, 0.5, 2000


class Scaler:
    def __init__(self, torch: Any, device: Any) -> None:
        self._torch = torch
        self.device = device
        self.scale = self.number(START)
        self._inverse = self.number(1 / START)
        self._one = self.number(1.0)
        self._grown = torch.zeros((), dtype=torch.int32, device=device)
        """Steps since the scale was last changed."""

    def number(self, value: float = 0.0) -> Any:
        """On the device."""
        return self._torch.full((), value, dtype=self._torch.float32, device=self.device)

    def scaled(self, gradient: Any) -> Any:
        """Of a loss, as it begins its way back."""
        return (gradient * self.scale).to(gradient.dtype)

    def scale_(self, gradients: Sequence[Any]) -> None:
        """Those that are there already, and that scaled ones are about to be added to."""
        for alike in self._alike(gradients):
            self._torch._foreach_mul_(alike, self.scale)

    def unscale_(self, gradients: Sequence[Any], flag: Any) -> None:
        """Sets the flag to one if a gradient is not finite."""
        for alike in self._alike(gradients):
            self._torch._amp_foreach_non_finite_check_and_unscale_(alike, flag, self._inverse)

    def check(self, gradients: Sequence[Any], flag: Any) -> None:
        """The same, without unscaling."""
        for alike in self._alike(gradients):
            self._torch._amp_foreach_non_finite_check_and_unscale_(alike, flag, self._one)

    def update(self, flags: Sequence[Any]) -> None:
        """Once optimizers have stepped, or have not because of these."""
        found = self._torch.stack(list(flags)).amax()
        self._torch._amp_update_scale_(self.scale, self._grown, found, GROWTH, BACKOFF, INTERVAL)
        self._inverse = self.scale.reciprocal()

    def _alike(self, gradients: Sequence[Any]) -> list[list[Any]]:
        """By number format: the kernels take one at a time."""
        by_format: dict[Any, list[Any]] = {}
        for gradient in gradients:
            values = self._values(gradient)
            by_format.setdefault(values.dtype, []).append(values)
        return list(by_format.values())

    def _values(self, gradient: Any) -> Any:
        values = gradient._values() if gradient.is_sparse else gradient
        return self._torch.view_as_real(values) if values.is_complex() else values
