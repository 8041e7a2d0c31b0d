"""How coarse a job's arithmetic is, and an optimisation's: in bits of the mantissa."""

from __future__ import annotations

from hotloop.levers.base import Effect
from hotloop.levers.registry import LEVERS
from hotloop.measurement import Measurement

FORMATS = {"bfloat16": 7, "float16": 10, "float32": 23, "float64": 52}


def own_mantissa(measurement: Measurement) -> int:
    inventory, precision = measurement.inventory, measurement.inventory.precision
    formats = [dtype for model in inventory.models for dtype in model.dtypes]
    if precision.autocast:
        formats.append(precision.autocast)
    bits = min((FORMATS[name] for name in formats if name in FORMATS), default=23)
    convolves = any(model.convolves for model in inventory.models)
    has_tf32 = precision.tf32_matmul or (precision.tf32_cudnn and convolves)
    on_gpu = measurement.software.device != "cpu"
    return min(bits, 10) if on_gpu and has_tf32 else bits


def mantissa(lever: str) -> int | None:
    kind = LEVERS[lever]
    return kind.mantissa if kind.effect is Effect.LOWER_PRECISION else None
