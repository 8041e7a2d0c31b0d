"""It computes in double precision, and nothing shows that it is meant: numpy's numbers are such."""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import distinct
from hotloop.diagnose.heavy_lines import by_flops, heavy_lines
from hotloop.diagnose.peaks import operators, peaks
from hotloop.diagnose.sightings import innermost
from hotloop.diagnose.threads import shared
from hotloop.diagnose.wording import percent
from hotloop.inspection import Frame
from hotloop.timeline import Phase

DOUBLE = "float64"
MOST = 0.5
"""Of the products. A loss or a statistic in double precision is meant to be."""
HALF = 0.5
"""As many bytes, and numbers to a register: single precision takes that long on most processors."""
SET = "Module.double"


def double_precision(case: Case) -> Finding | None:
    counted = operators(case)
    whole = sum(counted.flops.values()) if counted else 0.0
    if counted is None or not whole or case.measurement.inventory.precision.default_dtype == DOUBLE:
        return None
    part = counted.flops.get(DOUBLE, 0.0) / whole
    if part < MOST:
        return None
    computing, (left, how) = _computing(case), _left(case)
    share = computing * (1 - left)
    return Finding(
        rule="double_precision",
        title=f"{percent(part)} of the arithmetic is in double precision",
        share=share,
        remedy="Use float32: data.astype(numpy.float32), and no .double(), unless it is meant.",
        effort=Effort.LINES,
        evidence=(f"{percent(computing)} of a step is operators on many numbers", how),
        places=distinct([*_places(case), *heavy_lines(case, by_flops)]),
        is_limit=share >= LEAST_SHARE,
    )


def _computing(case: Case) -> float:
    """Small operators take as long on numbers of any format."""
    clock = case.figures.gpu_phases or case.figures.phases
    phases = (Phase.FORWARD, Phase.BACKWARD, Phase.OPTIMIZER)
    spent = sum(one.share for one in clock if one.phase in phases)
    large = shared(case)
    return spent if case.on_gpu or large is None else spent * large


def _left(case: Case) -> tuple[float, str]:
    rates = peaks(case)
    if DOUBLE in rates and "float32" in rates and rates["float32"] > rates[DOUBLE]:
        ratio = rates["float32"] / rates[DOUBLE]
        return 1 / ratio, f"this machine computes {ratio:.2g} times as fast in single precision"
    return HALF, f"assumed: single precision takes {percent(HALF)} less, half as many bytes"


def _places(case: Case) -> list[Frame]:
    """Where a model is told to."""
    calls = case.inspection.calls if case.inspection else []
    lines = (innermost(call.stack) for call in calls if call.what == SET)
    return [line for line in lines if line is not None]
