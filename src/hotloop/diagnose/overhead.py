"""What a pass costs however small its batch is, and what every further sample adds to it."""

from __future__ import annotations

from hotloop.diagnose.base import Case

REACHED = 0.4
"""Of the roof, by the products of a usual model at a usual batch."""


def sample_work(case: Case) -> float | None:
    """Seconds that the arithmetic of one step takes at a good batch size. None: not known."""
    operators = case.inspection.operators if case.inspection else None
    if operators is None or not operators.steps or case.roof is None:
        return None
    roof = case.roof.matrix_flops if case.on_gpu else case.roof.cpu_matrix_flops
    rates = [(flops, roof.get(name)) for name, flops in operators.flops.items()]
    if not rates or any(rate is None for _, rate in rates):
        return None
    return sum(flops / (REACHED * rate) for flops, rate in rates if rate) / operators.steps
