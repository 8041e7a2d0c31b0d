"""The beginning of a training that died, compared with that of one which did not."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.equivalence import structure
from hotloop.evidence import Structure


@dataclass(frozen=True)
class Beginning:
    steps: int
    """That the one which died has made."""
    batches: int
    """That were compared: what loaders delivered and models were given."""
    differs: str
    """What is not the same; empty when all of it is."""


def beginning(died: Structure, ran: Structure) -> Beginning:
    """As far as the one that died has come."""
    steps = len(died.steps)
    then = Structure(died.steps, died.settings, died.given)
    now = Structure(
        ran.steps[:steps],
        [seen for seen in ran.settings if seen.step < steps],
        _as_far_as(died, ran).given,
    )
    found = [
        *structure.step_differences(then, now),
        *structure.setting_differences(then, now),
        *_batch_differences(then, now),
    ]
    return Beginning(steps, len(died.given), found[0] if found else "")


def _as_far_as(died: Structure, ran: Structure) -> Structure:
    """Of every stream as much as the other one has seen of it."""
    left = {stream: len(given) for stream, given in _streams(died).items()}
    kept = []
    for given in ran.given:
        if left.get(given.stream, 0) > 0:
            left[given.stream] -= 1
            kept.append(given)
    return Structure(given=kept)


def _batch_differences(died: Structure, ran: Structure) -> list[str]:
    then, now = _streams(died), _streams(ran)
    return [
        f"the beginning of {stream} holds other data"
        for stream, given in then.items()
        if given != now.get(stream)
    ]


def _streams(found: Structure) -> dict[str, list[str]]:
    streams: dict[str, list[str]] = {}
    for given in found.given:
        streams.setdefault(given.stream, []).append(given.checksum)
    return streams
