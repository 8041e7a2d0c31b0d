"""The training waits for its next batch."""

from __future__ import annotations

from hotloop.diagnose import data_causes
from hotloop.diagnose.base import LEAST_SHARE, Case, Effort, Finding
from hotloop.diagnose.call_sites import dearest_lines, distinct
from hotloop.diagnose.gpu_time import Idle, gpu_time
from hotloop.diagnose.loading import loading
from hotloop.diagnose.sightings import at_training, share, sightings
from hotloop.diagnose.wording import percent, seconds, times
from hotloop.timeline import Phase

USUAL = "Load batches ahead of the training: in worker processes, or prepared beforehand."
KEPT = (
    "Give the loader more workers and keep them: num_workers, persistent_workers=True, in a loader "
    "that is built once. To start them for every pass may take longer than they save."
)
DEAR = 0.5
"""Of what workers save, for starting them: nobody should start them anew for every pass."""
ALL_AT_WORK = (
    "Make items cheaper, or prepare them before the training: workers take every core already."
)
REMEDIES = {
    "conversion": "Convert once, before the training, and keep what comes out of it.",
    "decoding": "Decode once, before the training, and keep what comes out of it.",
    "augmentation": "Augment whole batches on the device, or with cheaper operations, or less.",
    "tokenisation": "Tokenise once, before the training, and keep the numbers.",
    "collation": "Put a batch together with a few operations on whole tensors.",
    "storage": "Copy the data to a local disk or into memory before the training.",
    "worker_start": "Keep the workers from one pass to the next: persistent_workers=True.",
    "new_iterator": "Make one iterator, and not one for every batch: iter(loader) starts all anew.",
    "row_by_row": "Index the tensors by whole batches, inputs[rows], and not row by row.",
    "too_many_workers": "Give the loader no more workers than there are cores: num_workers.",
    "too_few_workers": "Give the loader more workers: num_workers.",
    "slow_item": "Shorten the few slow items, or prepare them before the training.",
}
SETTINGS = ("worker_start", "too_few_workers", "too_many_workers")
NO_LEVER = ("new_iterator", "too_many_workers")
"""What is wrong there is the script's own, and what anything else would win is not known."""
NOT_KEPT = ("augmentation", "collation", "worker_start", "row_by_row")
"""Work that keeping items would not spare: it is meant to differ, or comes after them."""


def waiting_for_data(case: Case) -> Finding | None:
    wait = waited(case)
    if wait < LEAST_SHARE:
        return None
    cause, takes = data_causes.cause(case), _takes(case, wait)
    saved = min(cause.saved, takes) if cause else wait
    if saved < LEAST_SHARE:
        return None
    name = cause.name if cause else ""
    lines = dearest_lines(data_causes.seen_loading(case))
    levers = _levers(case, name)
    return Finding(
        rule="waiting_for_data",
        title=_title(wait, name),
        share=saved,
        remedy=_remedy(case, name, saved),
        effort=Effort.SETTING if name in SETTINGS or (levers and not name) else Effort.LINES,
        evidence=(*_evidence(case, wait, saved), *(cause.evidence if cause else ())),
        places=cause.places if cause and cause.places else distinct(lines),
        levers=levers,
        cause=name,
        takes=takes,
    )


def _remedy(case: Case, cause: str, saved: float) -> str:
    if cause == "too_few_workers" and loading(case).starting > DEAR * saved:
        return KEPT
    if not cause and case.loader is not None and case.loader.workers >= case.cores:
        return ALL_AT_WORK
    return REMEDIES.get(cause, USUAL)


def waited(case: Case) -> float:
    """The share of a step that passes so."""
    gpu = gpu_time(case) if case.on_gpu else None
    if gpu is not None:
        return min(gpu.share(Idle.DATA), 1.0) * _drawing(case)
    return case.share(Phase.DATA) * _drawing(case) + data_causes.dropped(case)


def _takes(case: Case, wait: float) -> float:
    """What a GPU is kept waiting for is at most what it idles; cores may be short besides. Where a
    step took far longer than was reckoned, that may be for any reason."""
    load = loading(case)
    return wait if case.on_gpu or load.is_far_off else max(wait, load.saved_without(1.0))


def _drawing(case: Case) -> float:
    """The part of the phase that is."""
    if case.loader is not None:
        return 1.0
    seen, draws = sightings(case), data_causes.is_drawing(case)
    return 1 - share(seen, lambda one: not draws(one), among=lambda one: one.phase == Phase.DATA)


def _title(wait: float, cause: str) -> str:
    why = f": {cause.replace('_', ' ')}" if cause else ""
    return f"{percent(wait)} of a step waits for data{why}"


def _evidence(case: Case, wait: float, saved: float) -> tuple[str, ...]:
    spent = case.share(Phase.DATA) * case.figures.step.mean
    of_a_step = f"{seconds(spent)} of a step's {seconds(case.figures.step.mean)}"
    if case.loader is None:
        return (f"drawing a batch takes {of_a_step}; the script has no loader",)
    found = (f"the next batch takes {of_a_step}, with {times(case.loader.workers, 'worker')}",)
    if saved <= wait:
        return found
    return (*found, f"{times(case.cores, 'core')} cannot do both: loading also slows the training")


def _levers(case: Case, cause: str) -> tuple[str, ...]:
    """Workers and kept items need a dataset whose items can be asked for by their number."""
    loader = case.loader
    if loader is None or cause in NO_LEVER:
        return ()
    staged = ("stage_data",) if cause == "storage" and loader.names_files is not False else ()
    if loader.samples is None:
        return staged
    restarts = cause == "worker_start"  # workers that it has already can still be kept
    workers = ("loader_workers",) if restarts or loader.workers < case.cores else ()
    if cause in NOT_KEPT:
        return workers
    kept = () if any(any(look.draws) for look in at_training(case)) else ("cache_dataset",)
    return (*workers, *kept, *staged)
