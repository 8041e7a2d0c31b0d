from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose.rules.pageable_copies import pageable_copies
from tests.builders import loader
from tests.diagnose.gpu_making import PAGEABLE, PINNED, PRODUCT, Scene, blind, case, gain, script

BATCH = 77_000_000


def copies(scene: Scene, name: str = PAGEABLE, compute: float = 2.0) -> None:
    ms = BATCH / (8.9e6 if name == PAGEABLE else 55e6)
    scene.data(0.2).copy(ms, BATCH, name)
    scene.train(lambda: scene.run(PRODUCT, compute / 2), lambda: scene.run(PRODUCT, compute / 2))
    scene.step().cpu(0.3)


@pytest.mark.parametrize("compute", [0.5, 2.0, 8.0, 30.0])
def test_predicts_what_pinning_wins(compute: float) -> None:
    found = pageable_copies(case(lambda scene: copies(scene, compute=compute)))
    real = gain(
        lambda scene: copies(scene, compute=compute),
        lambda scene: copies(scene, PINNED, compute=compute),
    )
    assert found is not None
    assert 1 / (1 - found.share) == pytest.approx(1 / (1 - real), rel=0.15)
    assert found.levers == ("pin_memory", "device_prefetch")


def test_without_workers_the_training_thread_pins() -> None:
    made = case(copies)
    alone = replace(made, loader=loader(workers=0))
    with_workers, without = pageable_copies(made), pageable_copies(alone)
    assert with_workers is not None
    assert without is None or without.share < with_workers.share / 2


def test_copies_from_pinned_memory_are_none() -> None:
    assert pageable_copies(case(lambda scene: copies(scene, PINNED))) is None


def test_small_copies_do_not_matter() -> None:
    def small(scene: Scene) -> None:
        scene.data(0.2).copy(0.005, 10_000).train(lambda: scene.run(PRODUCT, 8)).step().wait()

    assert pageable_copies(case(small)) is None


def test_a_script_without_a_loader_has_lines_to_change() -> None:
    found = pageable_copies(replace(case(copies), loader=None))
    assert found is not None
    assert found.levers == ()
    assert found.effort == "a few lines"


class TestWithoutTheGpusRecord:
    def test_only_the_copies_themselves_are_counted(self) -> None:
        found = pageable_copies(blind(case(copies)))
        full = pageable_copies(case(copies))
        assert found is not None and full is not None
        assert 0 < found.share <= full.share

    def test_a_loader_that_pins_is_believed(self) -> None:
        made = blind(case(copies))
        pinned = replace(script(made, loaders=[loader(pinned=True)]), loader=loader(pinned=True))
        assert pageable_copies(pinned) is None

    def test_copies_that_do_not_block_are_believed(self) -> None:
        assert pageable_copies(blind(case(lambda scene: copies(scene, PINNED)))) is None


def test_there_is_nothing_to_copy_on_a_cpu() -> None:
    made = case(copies)
    software = replace(made.measurement.software, device="cpu")
    assert (
        pageable_copies(replace(made, measurement=replace(made.measurement, software=software)))
        is None
    )


def test_nothing_is_guessed_without_a_roof() -> None:
    found = pageable_copies(replace(case(copies), roof=None))
    assert found is not None
    assert "could be" not in " ".join(found.evidence)
