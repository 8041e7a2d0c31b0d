from __future__ import annotations

from hotloop import codec
from hotloop.doctor.check import Check, Status, gib, ok, unknown, warning


def test_three_ways() -> None:
    assert ok("a", "b") == Check("a", Status.OK, "b", "")
    assert warning("a", "b", "c") == Check("a", Status.WARNING, "b", "c")
    assert unknown("a", "b").status == "unknown"


def test_round_trip() -> None:
    check = warning("a", "b", "c")
    assert codec.decode(codec.encode(check), Check) == check


def test_sizes() -> None:
    assert (gib(2**26), gib(3 * 2**30)) == ("64 MiB", "3.0 GiB")
