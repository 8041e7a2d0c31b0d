from __future__ import annotations

import argparse

import pytest

from hotloop.cli.common import duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("1.5m", 90), ("1m30s", 90), ("2h", 7200), ("1h5m10s", 3910)],
)
def test_a_time_in_any_units(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "m", "5x", "1m30", "ten", "0s", "-1m", "1..2s", "inf"])
def test_what_is_none(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not a time; 90s, 10m and 1h30m are"):
        duration(text)
