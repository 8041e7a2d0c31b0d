"""The gradient of a large table is written out, though a step looks up few of its rows."""

from __future__ import annotations

from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import distinct
from hotloop.diagnose.peaks import operators
from hotloop.diagnose.wording import percent, seconds
from hotloop.timeline import Phase

FEW = 0.25
"""Of a table, in a step. With more of it sparse gradients win little: each comes with its row."""
SPARSE = ("SGD", "Adagrad", "SparseAdam")
"""Of torch's optimizers: those that take sparse gradients."""


def dense_embedding(case: Case) -> Finding | None:
    counted = operators(case)
    lines = [line for line in counted.lines if line.tables[0]] if counted else []
    if counted is None or case.on_gpu or not lines:
        return None
    numbers = sum(line.tables[0] for line in lines) / counted.steps
    touched = sum(line.tables[1] for line in lines) / counted.steps
    written, updated = _written(case), _updated(case, numbers)
    share = (written + updated) * (1 - touched / numbers)
    if touched > FEW * numbers or share < LEAST_SHARE:
        return None
    dear = sorted(lines, key=lambda line: -line.tables[0])
    a_step = case.figures.step.mean
    return Finding(
        rule="dense_embedding",
        title=f"{percent(written + updated)} of a step goes over whole tables of embeddings",
        share=share,
        remedy=f"Embedding(…, sparse=True), {_with(case)}",
        effort=Effort.LINES,
        evidence=(
            f"{numbers:,.0f} numbers of gradients a step, of which {touched:,.0f} at most are not "
            "zero",
            f"to write them takes {seconds(written * a_step)}, and to update by all of them "
            f"{seconds(updated * a_step)}",
        ),
        places=distinct(line.place for line in dear),
        takes=written + updated,
    )


def _written(case: Case) -> float:
    """The share of a step that computes them."""
    counted = operators(case)
    lines = counted.lines if counted else []
    whole = sum(line.backward_seconds for line in lines)
    part = sum(line.tables[2] for line in lines) / whole if whole else 0.0
    return case.share(Phase.BACKWARD) * part


def _updated(case: Case, numbers: float) -> float:
    held = sum(one.parameters for one in case.measurement.inventory.optimizers)
    return case.share(Phase.OPTIMIZER) * min(numbers / held, 1.0) if held else 0.0


def _with(case: Case) -> str:
    names = {one.name for one in case.measurement.inventory.optimizers}
    if names <= set(SPARSE):
        return "which the optimizer takes, without momentum and weight decay."
    return "with SGD, Adagrad or SparseAdam: that is another training than with momentum."
