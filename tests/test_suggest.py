"""What could be worth trying, by what was measured."""

from __future__ import annotations

from dataclasses import replace

from hotloop.figures import Figures, PhaseShare, figures
from hotloop.levers.base import Effect
from hotloop.levers.registry import LEVERS
from hotloop.suggest import LEAST_SHARE, suggestions
from tests import builders


def waiting(share: float) -> Figures:
    """Of a job that waits for its data for this share of a step."""
    found = figures(builders.measurement())
    assert found is not None
    phases = (PhaseShare("data", share, share), PhaseShare("forward", 1 - share, 1 - share))
    return replace(found, phases=phases)


def test_who_waits_for_data_could_have_workers() -> None:
    made = builders.measurement()
    loaders = [replace(loader, workers=0) for loader in made.inventory.loaders]
    made = replace(made, inventory=replace(made.inventory, loaders=loaders))
    first = suggestions(made, waiting(0.9), cores=8)[0]
    assert first.lever == "loader_workers"
    assert 0.5 < first.share <= 0.9


def test_who_does_not_wait_is_not_sent_there() -> None:
    names = [one.lever for one in suggestions(builders.measurement(), waiting(0.001), cores=8)]
    assert "loader_workers" not in names


def test_only_what_leaves_the_arithmetic_alone_and_is_worth_a_look() -> None:
    found = suggestions(builders.measurement(), waiting(0.5), cores=8)
    assert all(LEVERS[one.lever].effect is Effect.SAME_MATH for one in found)
    assert all(one.share >= LEAST_SHARE for one in found)
    assert [one.share for one in found] == sorted((one.share for one in found), reverse=True)
