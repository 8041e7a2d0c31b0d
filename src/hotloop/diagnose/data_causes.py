"""Why a job waits for its data. Each cause says which part of the loading work it takes."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from hotloop import timeline
from hotloop.diagnose import data_kinds
from hotloop.diagnose.base import Case
from hotloop.diagnose.call_sites import (
    at_the_loader,
    dearest_lines,
    distinct,
    in_the_dataset,
    is_idle,
)
from hotloop.diagnose.checkpoints import is_saving
from hotloop.diagnose.loading import Loading, computed, given_a_core, loading
from hotloop.diagnose.loops import at_a_loop
from hotloop.diagnose.side_jobs import beside_the_training
from hotloop.diagnose.sightings import (
    Sighting,
    at_training,
    in_workers,
    innermost,
    of_a_step,
    share,
    sightings,
)
from hotloop.diagnose.steady import Span, steady_spans, steady_steps
from hotloop.diagnose.wording import percent, seconds, times
from hotloop.inspection import Frame
from hotloop.measurement import Kind
from hotloop.timeline import Phase

MOST_OF_IT = 0.5
"""Of the loading work. A cause that explains less of it is not what the wait is about."""
NAMED = 0.3
"""The same for what lines of the items do: part of the work is always that of the loader itself.
Of collation the rest is known, it is the items': that must be most of the work."""
ON_A_CORE = 0.5
"""Of an item's time, where a core was free: one that computes less waits for something."""
FEW = 0.05
"""Of all items. Where so few of them take most of the time, the others are not the matter."""
ENOUGH_ITEMS = 40
"""Items, to speak of few of them."""
ONE_EACH = 1.5
"""Batches of a pass. One that ends after the first was hardly meant to be a pass, …"""
MANY_MORE = 4
"""… if there would have been so many."""
CROWD = 2
"""Times as many workers as cores, of items that keep one busy."""
TENSORS = "TensorDataset"
ROWS = 8
OF_ROWS = 0.9
"""Of loading such a batch, what indexing its tensors once spares: 64 rows, torch 2.13."""
WORKERS_WIN = 0.15
"""Of a step, by more workers. For less, what the loading itself takes is looked at first."""


@dataclass(frozen=True)
class Cause:
    name: str
    saved: float
    """The share of a step that is won without it."""
    evidence: tuple[str, ...]
    places: tuple[Frame, ...] = ()


def cause(case: Case) -> Cause | None:
    """The first that explains most of it; those that a setting removes come first."""
    load = loading(case)
    asked = (
        _worker_start,
        _row_by_row,
        _slow_item,
        _storage,
        _too_many_workers,
        _too_few_workers,
        _work,
    )
    for look in asked:
        if found := look(case, load):
            return found
    return None


def seen_loading(case: Case) -> list[Sighting]:
    """Where those were who load: the workers, or the training process itself."""
    workers = case.loader.workers if case.loader else 0
    if workers:
        return [sighting for sighting in in_workers(case) if not is_idle(sighting)]
    seen = [sighting for sighting in sightings(case) if sighting.phase == Phase.DATA]
    if case.loader is not None:
        return seen
    draws = is_drawing(case)
    return [sighting for sighting in seen if draws(sighting)]


def is_drawing(case: Case) -> Callable[[Sighting], bool]:
    """Without a loader all that lies between two steps passes for data; some of it is not."""
    looped, queueing, beside = at_a_loop(case), _queueing(case), beside_the_training(case)
    return lambda one: not (is_saving(one) or looped(one) or queueing(one) or beside(one))


def _queueing(case: Case) -> Callable[[Sighting], bool]:
    """Whether a thread was seen at a line that keeps a GPU at work, or waits for it."""
    inspection = case.inspection
    lines = inspection.operators.lines if inspection and inspection.operators else []
    places = {line.place for line in lines if 2 * line.on_gpu > line.operators}
    waits = inspection.synchronisations if inspection else []
    places |= {frame for wait in waits if (frame := innermost(wait.stack))}
    at = {(place.file, place.line) for place in places}
    return lambda seen: seen.line is not None and (seen.line.file, seen.line.line) in at


def _worker_start(case: Case, load: Loading) -> Cause | None:
    if case.loader is None or not case.loader.workers or case.loader.persistent:
        return None
    passes, spent = _starts(*_training(case))
    steps = len(steady_steps(case))
    spent += dropped(case) * load.step * steps
    saved = spent / (steps * load.step)
    if passes < 2 or saved * load.step < MOST_OF_IT * load.wait:
        return None
    is_left = _is_left_at_once(case, passes)
    if is_left:  # each wait is for a first batch: what is usual says nothing
        rest = load.step * (1 - dropped(case)) - load.wait
        saved = max(1 - max(rest, load.work / load.workers) / load.step, 0.0)
    elif tried := case.inspection.kept_seconds if case.inspection else []:
        saved = max(1 - statistics.median(tried) / load.step, 0.0)
    elif load.alone is not None:  # workers that come and go also take cores from the step itself
        saved = max(saved, load.saved_by_keeping_workers(spent / steps))
    waits = [one for one in sightings(case) if one.phase == Phase.DATA]
    name = "new_iterator" if is_left else "worker_start"
    evidence = (
        f"{passes} passes over the data began while it was timed",
        f"ending a pass and starting {times(load.workers, 'worker')} for the next takes "
        f"{seconds(spent / passes)}",
    )
    return Cause(name, saved, evidence, distinct(at_the_loader(waits)))


def _is_left_at_once(case: Case, passes: int) -> bool:
    """After one batch of many: next(iter(loader)) in every step."""
    spans, counts = _training(case)
    handed = sum(span.n >= 0 and counted for span, counted in zip(spans, counts, strict=True))
    batches = case.loader.batches if case.loader else None
    return handed < ONE_EACH * passes and (batches is None or batches >= MANY_MORE)


def dropped(case: Case) -> float:
    """The share of a step that goes by in a loader while no batch is asked for: an iterator ends
    its workers where the script lets go of it."""
    seen = sightings(case)
    return of_a_step(case, seen, lambda one: bool(at_the_loader([one])), (Phase.REST,))


def _training(case: Case) -> tuple[list[Span], list[bool]]:
    """Batches of the loader that training draws from, and which of them are part of a step.

    An evaluation's loaders start workers, too, and end with the pass before; no step waits for it.
    """
    events = case.measurement.events
    key = timeline.training_loader(events)
    spans = [span for span in steady_spans(case, Kind.DATA_BEGIN) if span.key == key]
    phases = timeline.phases_at(events, [span.begin_ns for span in spans])
    return spans, [phase is not Phase.EVALUATION for phase in phases]


def _starts(spans: list[Span], counts: list[bool]) -> tuple[int, float]:
    """How many passes began, and what ending the one before and the first batch took."""
    batches = [span.seconds for span in spans if span.n >= 0]
    usual = statistics.median(batches) if batches else 0.0
    passes, spent, begins = 0, 0.0, False
    for span, is_in_a_step in zip(spans, counts, strict=True):
        if span.n < 0:
            spent, begins = spent + span.seconds * is_in_a_step, True
        elif begins:
            took = max(span.seconds - usual, 0.0) * is_in_a_step
            passes, spent, begins = passes + is_in_a_step, spent + took, False
    return passes, spent


def _row_by_row(case: Case, load: Loading) -> Cause | None:
    """Tensors that are taken apart into rows, and put together again."""
    loader = case.loader
    if loader is None or loader.dataset != TENSORS or (loader.batch_size or 1) < ROWS:
        return None
    waits = [one for one in sightings(case) if one.phase == Phase.DATA]
    evidence = (f"a {TENSORS} hands out single rows, {loader.batch_size} of them to a batch",)
    places = distinct(at_the_loader(waits))
    return Cause("row_by_row", load.saved_without(OF_ROWS), evidence, places)


def _slow_item(case: Case, load: Loading) -> Cause | None:
    # More workers than cores wait for other threads of their own, which are in the queue for one.
    taken = given_a_core if load.workers <= load.cores else computed
    items = sorted(item for look in at_training(case) for item in taken(look))
    if len(items) < ENOUGH_ITEMS or not sum(items):
        return None
    usual = statistics.median(items)
    few = items[-max(1, round(len(items) * FEW)) :]
    part = sum(item - usual for item in few) / sum(items) * _of_items(load)
    if part < MOST_OF_IT:
        return None
    evidence = (
        f"{percent(len(few) / len(items))} of the items take {percent(sum(few) / sum(items))} of "
        f"the time: up to {seconds(items[-1])}, where {seconds(usual)} is usual",
    )
    return Cause("slow_item", load.saved_without(part), evidence, _places(seen_loading(case)))


def _storage(case: Case, load: Loading) -> Cause | None:
    # Where more processes want to run than there are cores, they wait for those.
    crowd = min(1.0, load.cores / (load.workers + 1))
    if not load.items or load.items_cpu >= ON_A_CORE * crowd * load.items:
        return None
    part = (1 - load.items_cpu / load.items) * _of_items(load)
    if part < MOST_OF_IT:
        return None
    evidence = (
        f"an item keeps a core busy for {percent(load.items_cpu / load.items)} of the time it "
        "takes: for the rest it waits, for a disk or a network",
    )
    return Cause("storage", load.saved_without(part), evidence, _places(seen_loading(case)))


def _too_many_workers(case: Case, load: Loading) -> Cause | None:
    """They stand in each other's way, and in that of the training."""
    if load.workers < CROWD * load.cores or not load.items:
        return None
    saved = load.saved_with(load.cores)
    if saved < WORKERS_WIN:
        return None
    evidence = (
        f"{times(load.workers, 'worker')} on {times(load.cores, 'core')}",
        f"the data of a step takes {seconds(load.items + load.collate)} to load",
    )
    seen = [one for one in sightings(case) if one.phase == Phase.DATA]
    places = distinct([*at_the_loader(seen), *_places(seen_loading(case))])
    return Cause("too_many_workers", saved, evidence, places)


def _too_few_workers(case: Case, load: Loading) -> Cause | None:
    if case.loader is None or case.loader.samples is None or load.workers >= load.cores:
        return None
    saved = min(load.saved_with(load.cores), load.reckoned_with(load.cores))
    if saved < WORKERS_WIN or (load.workers and not load.items):
        return None
    seen = [one for one in sightings(case) if one.phase == Phase.DATA]
    evidence = [f"{times(load.workers, 'worker')} on {times(load.cores, 'core')}"]
    if load.items:
        evidence.append(f"the data of a step takes {seconds(load.items + load.collate)} to load")
    if does := _work(case, load):
        evidence += does.evidence
    places = distinct([*at_the_loader(seen), *_places(seen_loading(case))])
    return Cause("too_few_workers", saved, tuple(evidence), places)


def _work(case: Case, load: Loading) -> Cause | None:
    """What the lines do that were seen most."""
    seen = seen_loading(case)
    parts = {kind: share(seen, _is(kind)) for kind in data_kinds.Kind}
    if load.items + load.collate:
        parts[data_kinds.Kind.COLLATION] = max(
            parts[data_kinds.Kind.COLLATION], 1 - _of_items(load)
        )
    kind = max(parts, key=lambda one: parts[one])
    if parts[kind] < (MOST_OF_IT if kind is data_kinds.Kind.COLLATION else NAMED):
        return None
    evidence = (f"{percent(parts[kind])} of the loading is {kind.value}",)
    places = _places([one for one in seen if data_kinds.kind_of(one) is kind])
    return Cause(kind.value, load.saved_without(parts[kind]), evidence, places)


def _is(kind: data_kinds.Kind) -> Callable[[Sighting], bool]:
    return lambda sighting: data_kinds.kind_of(sighting) is kind


def _of_items(load: Loading) -> float:
    """Their share of the loading work."""
    whole = load.items + load.collate
    return load.items / whole if whole else 1.0


def _places(seen: list[Sighting]) -> tuple[Frame, ...]:
    """The dearest lines, and the dataset's line that leads to them."""
    lines = dearest_lines(seen)
    return distinct([*lines[:2], *in_the_dataset(seen)[:1], *lines[2:]])
