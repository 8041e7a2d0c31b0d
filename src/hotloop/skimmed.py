"""A study whose long columns stay text until somebody asks for them, and are let go afterwards.

Samples as Python's own numbers take five times the room that they take as text, and making that
room costs more than reading them does. A report asks every trial how long its steps took, once,
and only a few for their losses or for the GPU's clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, make_dataclass
from functools import lru_cache, partial
from typing import Any

import msgspec

from hotloop.measurement import Events, GpuTimes, Losses, Measurement
from hotloop.picking import picked
from hotloop.study import Study
from hotloop.trial.trial import Trial

AT_ONCE = 4
"""Long fields that are kept as numbers at a time: those of one trial, and one more."""

Complain = Callable[[], object]
"""Says what is wrong with the file, by raising."""

# The same values, field by field, except for what is left as text. msgspec leaves only a field
# without a default as text; a study that lacks one is read as a whole.
_Columns: Any = make_dataclass("_Columns", [(one.name, msgspec.Raw) for one in fields(Events)])
_Measurement: Any = make_dataclass(
    "_Measurement",
    [("events", _Columns), ("gpu", msgspec.Raw), ("losses", msgspec.Raw)],
    bases=(Measurement,),
    frozen=True,
    kw_only=True,
)
_Trial: Any = make_dataclass(
    "_Trial", [("measurement", _Measurement | None, None)], bases=(Trial,), frozen=True
)
_Study: Any = make_dataclass(
    "_Study", [("trials", tuple[_Trial, ...], ())], bases=(Study,), frozen=True
)


class _Unread:
    """Fields that Python does not find, and therefore asks `__getattr__` for."""

    _unread: dict[str, Callable[[], Any]]

    def __eq__(self, other: object) -> bool:
        """With those that were read as a whole, too."""
        if not isinstance(other, Measurement | Events):
            return NotImplemented
        names = [one.name for one in fields(other)]
        return all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = None  # type: ignore[assignment]  # as for every value that holds lists


class SkimmedEvents(_Unread, Events):
    """Events like any others, whose times are read when they are asked for."""

    _text: msgspec.Raw | None = None
    """None: a copy with other times."""

    def __getattr__(self, name: str) -> Any:
        if name != "time_ns":
            raise AttributeError(name)
        found = self._unread[name]()
        vars(self)[name] = found  # goes when the events go
        return found

    def times_at(self, places: list[int]) -> Any:
        found = None if self._text is None else picked(self._text, places)
        return super().times_at(places) if found is None else found


class Skimmed(_Unread, Measurement):
    """A measurement like any other, whose long fields are read when they are asked for."""

    def __getattr__(self, name: str) -> Any:
        if name not in ("events", "gpu", "losses"):
            raise AttributeError(name)
        return _read(self._unread[name])


def skim(data: bytes, complain: Complain) -> Study:
    """Raises ValueError for what is no study, as far as that is seen without reading all of it.

    `complain`: called where a long field turns out not to hold what it should.
    """
    found: Any = msgspec.json.decode(data, type=_Study)
    trials = tuple(_trial(trial, complain) for trial in found.trials)
    return Study(**{**vars(found), "trials": trials})


@lru_cache(maxsize=AT_ONCE)
def _read(unread: Callable[[], Any]) -> Any:
    return unread()


def _trial(found: Any, complain: Complain) -> Trial:
    measured = found.measurement
    made = None if measured is None else _measurement(measured, complain)
    return Trial(**{**vars(found), "measurement": made})


def _measurement(found: Any, complain: Complain) -> Skimmed:
    made, kept = object.__new__(Skimmed), dict(vars(found))
    unread = {
        "events": partial(_events, kept.pop("events"), complain),
        "gpu": partial(decode, kept.pop("gpu"), GpuTimes, complain),
        "losses": partial(decode, kept.pop("losses"), Losses, complain),
    }
    vars(made).update(kept, _unread=unread)
    return made


def _events(texts: Any, complain: Complain) -> Events:
    made, columns = object.__new__(SkimmedEvents), dict(vars(texts))
    times = columns.pop("time_ns")
    read = {name: decode(text, list[int], complain) for name, text in columns.items()}
    unread = {"time_ns": partial(decode, times, list[int], complain)}
    vars(made).update(read, _unread=unread, _text=times)
    return made


def decode(text: msgspec.Raw, kind: type, complain: Complain) -> Any:
    try:
        return msgspec.json.decode(text, type=kind)
    except ValueError:
        complain()
        raise
