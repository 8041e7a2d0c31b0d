from __future__ import annotations

from hotloop import codec
from hotloop.roof import Roof


def test_round_trip() -> None:
    roof = Roof("X", "2.13.0", "570", "A CPU", 8, "2030-01-01", True, {"tf32": 3e14}, 4e12)
    assert codec.decode(codec.encode(roof), Roof) == roof


def test_nothing_known_is_not_zero() -> None:
    figures = {name: value for name, value in vars(Roof()).items() if value is not False}
    assert not any(isinstance(value, int | float) for value in figures.values())
