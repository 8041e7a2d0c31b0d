from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest

from hotloop.runtime.look.no_anomaly import NoAnomalyProbe
from hotloop.runtime.watching import Watch


@pytest.fixture
def probe(torch: Any, unharmed: None) -> Iterator[NoAnomalyProbe]:
    watch = Watch(torch)
    probe = NoAnomalyProbe(torch)
    probe.attach(watch.seams)
    watch.driver.attach()
    yield probe
    watch.driver.detach()
    torch.set_anomaly_enabled(False)


def train(torch: Any, after: Callable[[], None], around: Callable[[], Any], n: int) -> list[bool]:
    """Of each step: whether it noted where its operators were called."""
    model, noted = torch.nn.Linear(3, 1), []
    for _ in range(n):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            context: AbstractContextManager[Any] = around()
        with context:
            loss = model(torch.ones(2, 3)).sum()
            noted.append("traceback_" in loss.grad_fn.metadata)
            loss.backward()
        after()
    return noted


ON, OFF = [True] * 3, [False] * 3


def nothing() -> None: ...


def test_turned_on_once_and_tried_without(torch: Any, probe: NoAnomalyProbe) -> None:
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    train(torch, nothing, nullcontext, 3)
    assert probe.is_worth_it
    probe.begin()
    assert train(torch, probe.stepped, nullcontext, 12) == ON + OFF + ON + OFF
    probe.end()
    assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
    assert probe.tried is not None and probe.tried.seconds is not None


def test_turned_on_for_each_step(torch: Any, probe: NoAnomalyProbe) -> None:
    """By a context around its passes, which is over when the step is."""
    around = torch.autograd.detect_anomaly
    train(torch, nothing, around, 3)
    assert probe.is_worth_it
    probe.begin()
    assert train(torch, probe.stepped, around, 12) == ON + OFF + ON + OFF
    probe.end()
    assert not torch.is_anomaly_enabled()
    assert train(torch, nothing, around, 1) == [True]


def test_off_it_is_nothing_to_try(torch: Any, probe: NoAnomalyProbe) -> None:
    train(torch, nothing, nullcontext, 3)
    assert not probe.is_worth_it and probe.tried is None
