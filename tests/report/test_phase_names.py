from __future__ import annotations

from dataclasses import replace

from hotloop.measurement import Inventory, Software
from hotloop.report.phase_names import BETWEEN, NAMES, phase_names
from hotloop.timeline import Phase
from tests import builders

LOADING = replace(builders.measurement(), inventory=Inventory(loaders=[builders.loader()]))


def test_every_phase_has_a_name() -> None:
    assert set(NAMES) == set(Phase)


def test_only_a_loader_is_waited_for_beside_a_gpu() -> None:
    by_hand = replace(builders.measurement(), inventory=Inventory())
    beside = Software(device=builders.GPU)
    assert phase_names(replace(by_hand, software=beside))[Phase.DATA] == BETWEEN
    assert phase_names(replace(LOADING, software=beside)) == NAMES
    assert phase_names(by_hand) == phase_names(None) == NAMES
