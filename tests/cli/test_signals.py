from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from hotloop.cli import signals
from hotloop.trial.order import Glimpse

GLIMPSE = Glimpse(1.0, 1, None, b"")


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in signals._ASKS_TO_STOP}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_are_noted_and_heeded_at_a_good_moment(number: signal.Signals) -> None:
    glimpses: list[Glimpse] = []
    with signals.noted() as received:
        watch = signals.heeded(received, lambda glimpse: glimpses.append(glimpse))
        watch(GLIMPSE)
        signal.raise_signal(number)
        signal.raise_signal(number)  # an impatient user
        with pytest.raises(KeyboardInterrupt):
            watch(GLIMPSE)
    assert received == [number, number]
    assert glimpses == [GLIMPSE, GLIMPSE]


def test_handlers_come_back() -> None:
    def mine(number: int, frame: object) -> None:
        pass

    signal.signal(signal.SIGTERM, mine)
    with signals.noted():
        assert signal.getsignal(signal.SIGTERM) is not mine
    assert signal.getsignal(signal.SIGTERM) is mine


def test_what_is_ignored_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with signals.noted() as received:
        signal.raise_signal(signal.SIGHUP)
    assert received == []
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
