"""A study whose long columns stay text until somebody asks for them, and are let go afterwards.

Samples as Python's own numbers take five times the room that they take as text, and making that
room costs more than reading them does. A report asks every trial how long its steps took, once,
and only a few for their losses or for the GPU's clock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, make_dataclass
from functools import lru_cache
from typing import Any

import msgspec

from hotloop.measurement import Events, GpuTimes, Losses, Measurement
from hotloop.study import Study
from hotloop.trial.trial import Trial

LONG: dict[str, type] = {"events": Events, "gpu": GpuTimes, "losses": Losses}
"""The fields of a measurement that grow with every step."""

AT_ONCE = 4
"""Long fields that are kept as numbers at a time: those of one trial, and one more."""

# The same values, field by field, except for what is left as text. msgspec leaves only a field
# without a default as text; a study that lacks one is read as a whole.
_Measurement: Any = make_dataclass(
    "_Measurement",
    [(name, msgspec.Raw) for name in LONG],
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


class Text:
    """A long field, as it stands in the file."""

    def __init__(self, text: msgspec.Raw, kind: type, complain: Callable[[], object]) -> None:
        self._text, self._kind, self._complain = text, kind, complain

    def read(self) -> Any:
        try:
            return msgspec.json.decode(self._text, type=self._kind)
        except ValueError:
            self._complain()
            raise


class Skimmed(Measurement):
    """A measurement like any other, whose long fields are read when they are asked for."""

    _texts: dict[str, Text]

    def __getattr__(self, name: str) -> Any:
        """Python asks here for what it has not found: a long field."""
        if name not in LONG:
            raise AttributeError(name)
        return _read(self._texts[name])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Measurement):
            return NotImplemented
        return all(getattr(self, one.name) == getattr(other, one.name) for one in fields(self))

    __hash__ = None  # type: ignore[assignment]  # as for every value that holds lists


def skim(data: bytes, complain: Callable[[], object]) -> Study:
    """Raises ValueError for what is no study, as far as that is seen without reading all of it.

    `complain`: called where a long field turns out not to hold what it should, to say so.
    """
    found: Any = msgspec.json.decode(data, type=_Study)
    trials = tuple(_trial(trial, complain) for trial in found.trials)
    return Study(**{**vars(found), "trials": trials})


@lru_cache(maxsize=AT_ONCE)
def _read(text: Text) -> Any:
    return text.read()


def _trial(found: Any, complain: Callable[[], object]) -> Trial:
    measured = found.measurement
    made = None if measured is None else _skimmed(measured, complain)
    return Trial(**{**vars(found), "measurement": made})


def _skimmed(found: Any, complain: Callable[[], object]) -> Skimmed:
    made = object.__new__(Skimmed)
    kept = dict(vars(found))
    texts = {name: Text(kept.pop(name), kind, complain) for name, kind in LONG.items()}
    vars(made).update(kept, _texts=texts)
    return made
