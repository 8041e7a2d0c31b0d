"""The structure of two trainings, compared exactly: batches, steps, and settings of each step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from hotloop.evidence import Evidence, Given, SettingSeen, StepSeen, Structure
from hotloop.measurement import LoaderSeen


def regrouped(structure: Structure, hides_model: bool = False) -> Structure:
    """As it is compared where a plan may take the samples of a step in other passes than the job.

    What a loader delivers is the whole batch either way; what the model is given is compared by the
    step, unless steps are replayed and nobody sees it.
    """
    delivered = [given for given in structure.given if given.stream.startswith("loader")]
    return replace(structure, given=delivered if hides_model else [*delivered, *structure.by_step])


def steps_made(seen: Evidence) -> int:
    """By the job: of several optimizers, those of the one that steps most often."""
    return _of_the_busiest(seen.structure.steps)


def steps_forced(seen: Evidence) -> int:
    """Of these, those that began from the reference's own weights."""
    steps = seen.structure.steps
    return _of_the_busiest(steps[place] for place in seen.forced if place < len(steps))


def _of_the_busiest(steps: Iterable[StepSeen]) -> int:
    return max(Counter(step.optimizer for step in steps).values(), default=0)


def step_differences(
    reference: Structure, candidate: Structure, regroups: bool = False
) -> Iterator[str]:
    """`regroups`: whether the passes of a step may be more or fewer."""
    if len(candidate.steps) < len(reference.steps):
        yield (
            f"it made {len(candidate.steps)} steps in the time of {len(reference.steps)}: "
            "steps are missing"
        )
    elif len(candidate.steps) > len(reference.steps):
        yield f"it made {len(candidate.steps)} steps instead of {len(reference.steps)}"
    for number, (then, now) in enumerate(
        zip(reference.steps, candidate.steps, strict=False), start=1
    ):
        found = _step_difference(then, now, regroups)
        if found:
            yield f"step {number}: {found}"
            return  # what follows is shifted, and only says it again


def _step_difference(then: StepSeen, now: StepSeen, regroups: bool) -> str:
    if then.optimizer != now.optimizer:
        return "another optimizer stepped"
    if then.passes != now.passes and not (regroups and now.passes):
        return f"{now.passes} backward passes instead of {then.passes}"
    if then.clips != now.clips:
        return f"gradients were clipped {now.clips} times instead of {then.clips}"
    # A gradient scaler may skip a step that overflowed, here or there: that is its work.
    if then.taken and now.taken and then.moved and not now.moved:
        return "the optimizer stepped but changed no weights"
    return ""


def skipped(structure: Structure) -> int:
    """Steps that a gradient scaler left out."""
    return sum(not step.taken for step in structure.steps)


def setting_differences(reference: Structure, candidate: Structure) -> Iterator[str]:
    then, now = _by_place(reference), _by_place(candidate)
    places = [p for p in sorted(then.keys() | now.keys()) if then.get(p) != now.get(p)]
    for place in places:
        if place[:3] == places[0][:3]:  # later ones, and other groups, mostly say it again
            step, _, group, name = place
            was, became = (_value(seen.get(place)) for seen in (then, now))
            where = f" of group {group + 1}" if group else ""
            yield f"step {step + 1}: {name}{where} is {became} instead of {was}"


def _by_place(structure: Structure) -> dict[tuple[int, int, int, str], str]:
    return {_place(seen): seen.value for seen in structure.settings}


def _place(seen: SettingSeen) -> tuple[int, int, int, str]:
    return seen.step, seen.optimizer, seen.group, seen.name


def _value(text: str | None) -> str:
    return "as before" if text is None else text


def exact_streams(reference: Structure, yardstick: Structure) -> list[str]:
    """Those that do not depend on the weights: rounding otherwise leaves them as they are.

    What a critic is given was made by a generator, and an agent sees what its actions led to; such
    a stream cannot be compared exactly.
    """
    then, now = _streams(reference), _streams(yardstick)
    return [name for name, given in then.items() if _first_difference(given, now.get(name)) is None]


def batch_differences(
    reference: Structure, candidate: Structure, streams: list[str]
) -> Iterator[str]:
    then, now = _streams(reference), _streams(candidate)
    for name in streams:
        place = _first_difference(then[name], now.get(name))
        if place is not None:
            yield _batch_difference(name, place, then[name], now.get(name, []))


def _batch_difference(name: str, place: int, then: list[Given], now: list[Given]) -> str:
    what = f"batch {place + 1} of {name}"
    if place >= len(now):
        return f"{what} is missing"
    if place >= len(then):
        return f"{what} is one too many"
    if then[place].samples != now[place].samples:
        return f"{what} has {now[place].samples} samples instead of {then[place].samples}"
    if any(now[place].checksum == given.checksum for given in then):
        return f"{what} comes in another order"
    return f"{what} holds other data"


def _streams(structure: Structure) -> dict[str, list[Given]]:
    last = len(structure.steps)
    streams: dict[str, list[Given]] = {}
    for given in structure.given:
        if given.step < last:  # what is fetched ahead when a trial ends belongs to no step
            streams.setdefault(given.stream, []).append(given)
    return streams


def _first_difference(then: list[Given], now: list[Given] | None) -> int | None:
    now = now or []
    for place, (one, other) in enumerate(zip(then, now, strict=False)):
        if one.checksum != other.checksum:
            return place
    return None if len(then) == len(now) else min(len(then), len(now))


def loader_differences(reference: list[LoaderSeen], candidate: list[LoaderSeen]) -> Iterator[str]:
    """What a whole pass would hold, which a short trial may not see to the end."""
    for number, (then, now) in enumerate(zip(reference, candidate, strict=False)):
        for name in ("samples", "batches", "batch_size", "drop_last", "shuffled"):
            was, became = getattr(then, name), getattr(now, name)
            if was != became:
                yield f"loader {number}: {name} is {became} instead of {was}"
