"""What a GPU could do on paper: the maker's peaks, dense, without sparsity.

Never reached by a real product, and no substitute for a measured roof. But a measured roof far
below the paper says that something holds this GPU back. The figures are those of NVIDIA's data
sheets and architecture white papers, for sums kept in float32, as torch keeps them: half of what is
advertised for float16 on a GeForce.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class DataSheet:
    name: str
    matrix_flops: dict[str, float]
    """FLOP/s by precision; a format that the hardware lacks is missing."""
    memory_bandwidth: float
    """Bytes/s."""


def datasheet(name: str) -> DataSheet | None:
    """By the name that torch and NVML give a GPU. None for one that is not in the table.

    The whole name has to fit: a slice of a GPU (MIG) and a laptop's namesake are other devices.
    """
    plain = re.sub(r"^(NVIDIA|Tesla)\s+|^NVIDIA\s+Tesla\s+", "", name.strip())
    for pattern, sheet in _SHEETS:
        if re.fullmatch(pattern, plain):
            return sheet
    return None


def _sheet(
    name: str, fp32: float, tf32: float | None, bf16: float | None, fp16: float, terabytes: float
) -> DataSheet:
    """Peaks in TFLOP/s, bandwidth in TB/s."""
    peaks = {"float32": fp32, "tf32": tf32, "bfloat16": bf16, "float16": fp16}
    flops = {precision: peak * 1e12 for precision, peak in peaks.items() if peak is not None}
    return DataSheet(name, flops, terabytes * 1e12)


_SHEETS: tuple[tuple[str, DataSheet], ...] = (
    # pattern                        name, fp32, tf32, bf16, fp16, memory
    (r"B200( .*HBM3e)?", _sheet("B200", 75, 1125, 2250, 2250, 8.0)),
    (r"GH200 480GB", _sheet("GH200 96GB", 67, 494.7, 989.4, 989.4, 4.0)),
    (r"H200( SXM)?", _sheet("H200 SXM", 67, 494.7, 989.4, 989.4, 4.8)),
    (r"H200 NVL", _sheet("H200 NVL", 60, 417.5, 835.5, 835.5, 4.8)),
    (r"H100 80GB HBM3|H100 SXM.*", _sheet("H100 SXM", 67, 494.7, 989.4, 989.4, 3.35)),
    (r"H100 PCIe", _sheet("H100 PCIe", 51, 378, 756, 756, 2.0)),
    (r"H100 NVL", _sheet("H100 NVL", 60, 417.5, 835.5, 835.5, 3.9)),
    (r"A100-SXM4-80GB", _sheet("A100 80GB SXM", 19.5, 156, 312, 312, 2.039)),
    (r"A100 80GB PCIe", _sheet("A100 80GB PCIe", 19.5, 156, 312, 312, 1.935)),
    (r"A100-(SXM4|PCIE)-40GB", _sheet("A100 40GB", 19.5, 156, 312, 312, 1.555)),
    (r"A40", _sheet("A40", 37.4, 74.8, 149.7, 149.7, 0.696)),
    (r"A30", _sheet("A30", 10.3, 82, 165, 165, 0.933)),
    (r"A10", _sheet("A10", 31.2, 62.5, 125, 125, 0.6)),
    (r"RTX A6000", _sheet("RTX A6000", 38.7, 77.4, 154.8, 154.8, 0.768)),
    (r"RTX 6000 Ada Generation", _sheet("RTX 6000 Ada", 91.1, 182.1, 364.2, 364.2, 0.96)),
    (r"L40S", _sheet("L40S", 91.6, 183, 362, 362, 0.864)),
    (r"L40", _sheet("L40", 90.5, 90.5, 181, 181, 0.864)),
    (r"L4", _sheet("L4", 30.3, 60, 121, 121, 0.3)),
    (r"T4", _sheet("T4", 8.1, None, None, 65, 0.32)),
    (r"V100-SXM[23].*", _sheet("V100 SXM", 15.7, None, None, 125, 0.9)),
    (r"V100-PCIE.*", _sheet("V100 PCIe", 14, None, None, 112, 0.9)),
    (r"GeForce RTX 3090", _sheet("RTX 3090", 35.6, 35.6, 71, 71, 0.936)),
    (r"GeForce RTX 4090", _sheet("RTX 4090", 82.6, 82.6, 165.2, 165.2, 1.008)),
    (r"GeForce RTX 5090", _sheet("RTX 5090", 104.8, 104.8, 209.5, 209.5, 1.792)),
)
