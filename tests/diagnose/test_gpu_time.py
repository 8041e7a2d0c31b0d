from __future__ import annotations

from dataclasses import replace

import pytest

from hotloop.diagnose import spans
from hotloop.diagnose.gpu_time import Idle, gpu_time
from hotloop.inspection import Kernels
from hotloop.measurement import Events
from tests.diagnose.gpu_making import ADD, PRODUCT, Scene, blind, case, line, look_at


def busy(scene: Scene) -> None:
    """The CPU is always ahead."""
    scene.data(0.01)
    scene.train(lambda: scene.run(PRODUCT, 4), lambda: scene.run(PRODUCT, 8)).step()


def waiting_for_data(scene: Scene) -> None:
    scene.data(6).train(lambda: scene.run(PRODUCT, 2)).step()


def slow_queueing(scene: Scene) -> None:
    def tiny() -> None:
        for _ in range(100):
            scene.run(ADD, 0.005, queueing=0.02)

    scene.train(tiny, tiny).step()


def asking(scene: Scene) -> None:
    scene.train(lambda: scene.run(PRODUCT, 4).wait().cpu(2).run(PRODUCT, 4)).step()


class TestGpuTime:
    def test_a_busy_gpu_idles_for_no_reason(self) -> None:
        found = gpu_time(case(busy))
        assert found is not None
        assert found.busy_share > 0.98
        assert found.idle_share == pytest.approx(1 - found.busy_share, abs=1e-9)

    @pytest.mark.parametrize(
        ("job", "why", "share"),
        [
            (waiting_for_data, Idle.DATA, 6 / 6.005),
            (slow_queueing, Idle.LAUNCH, 0.015 / 0.02),
            (asking, Idle.SYNC, 2 / 10),
        ],
    )
    def test_why_it_idles(self, job, why, share) -> None:  # type: ignore[no-untyped-def]
        found = gpu_time(case(job))
        assert found is not None
        if why is Idle.DATA:  # the kernel runs on while the next batch is waited for
            share -= 2 / 6.005
        assert found.share(why) == pytest.approx(share, abs=0.02)
        assert found.busy + sum(found.idle.values()) == pytest.approx(found.seconds)

    def test_a_short_wait_of_a_slow_cpu_is_not_to_blame(self) -> None:
        def both(scene: Scene) -> None:
            slow_queueing(scene)
            scene.wait()

        found = gpu_time(case(both))
        assert found is not None
        assert found.share(Idle.SYNC) < 0.01 < 0.7 < found.share(Idle.LAUNCH)

    def test_what_looking_adds_is_taken_away_again(self) -> None:
        found = gpu_time(case(busy, overhead=1.0))
        assert found is not None
        assert found.busy_share > 0.98
        slow = gpu_time(case(slow_queueing, overhead=0.02))
        assert slow is not None
        assert slow.share(Idle.LAUNCH) == pytest.approx(0.75, abs=0.02)

    def test_an_evaluation_is_no_part_of_it(self) -> None:
        turns = iter(range(1000))

        def sometimes(scene: Scene) -> None:
            busy_alone(scene)
            if next(turns) % 24 == 20:
                scene.log.no_grad(50, 8)

        def busy_alone(scene: Scene) -> None:
            scene.train(lambda: scene.run(PRODUCT, 4).cpu(4)).step()

        found = gpu_time(case(sometimes))
        assert found is not None
        assert found.busy_share == pytest.approx(1.0, abs=0.02)

    def test_nothing_is_known_without_its_counters(self) -> None:
        made = case(busy)
        assert gpu_time(blind(made)) is None
        assert gpu_time(replace(made, inspection=None)) is None
        assert gpu_time(replace(made, looked=None)) is None
        assert gpu_time(look_at(made, kernels=Kernels())) is None

    def test_without_events_the_cpu_was_at_something_unknown(self) -> None:
        made = case(slow_queueing)
        assert made.looked is not None
        found = gpu_time(replace(made, looked=replace(made.looked, events=Events())))
        assert found is not None
        assert set(found.idle) == {Idle.LAUNCH}

    def test_a_hidden_wait_lasts_until_the_gpu_is_done(self) -> None:
        def hidden(scene: Scene) -> None:
            scene.train(
                lambda: scene.run(PRODUCT, 4).wait("a hidden wait", timed=False).cpu(2)
            ).step()

        found = gpu_time(case(hidden))
        assert found is not None
        assert found.share(Idle.SYNC) == pytest.approx(2 / 6, abs=0.01)

    def test_what_idles_after_a_blocking_copy_is_no_waits_doing(self) -> None:
        """The copy would wait instead."""

        def both(scene: Scene) -> None:
            scene.copy(0.001, 100).cpu(2).train(lambda: scene.run(PRODUCT, 4)).wait().step()

        found = gpu_time(case(both))
        assert found is not None
        assert found.share(Idle.SYNC) < 0.01
        assert found.share(Idle.LAUNCH) == pytest.approx(2 / 6, abs=0.02)

    def test_each_wait_answers_for_what_follows_it(self) -> None:
        def two(scene: Scene) -> None:
            scene.run(PRODUCT, 4).wait(stack=[line(1)]).cpu(1)
            scene.run(PRODUCT, 4).wait(stack=[line(2)]).cpu(3)
            scene.train(lambda: None).step()

        found = gpu_time(case(two))
        assert found is not None
        first, second = (found.by_wait[which] / found.steps for which in (0, 1))
        assert first == pytest.approx(1e-3, rel=0.05)
        assert second == pytest.approx(3e-3, rel=0.05)


class TestGaps:
    def test_streams_overlap(self) -> None:
        kernels = Kernels(1, 0, 100_000, ["a"], [0, 0, 0], [10_000, 15_000, 60_000], [40_000, 5, 9])
        assert spans.gaps(kernels) == [(0, 10_000), (50_000, 60_000), (60_009, 100_000)]

    def test_the_pause_between_two_kernels_is_none(self) -> None:
        kernels = Kernels(1, 0, 100_000, ["a"], [0, 0], [0, 52_000], [50_000, 48_000])
        assert spans.gaps(kernels) == []

    def test_what_reaches_over_the_edges_is_cut(self) -> None:
        kernels = Kernels(1, 10_000, 100_000, ["a"], [0, 0], [0, 90_000], [20_000, 20_000])
        assert spans.gaps(kernels) == [(20_000, 90_000)]
        late = Kernels(1, 0, 100_000, ["a"], [0], [150_000], [5])
        assert spans.gaps(late) == [(0, 100_000)]

    def test_a_span_is_cut_where_something_else_begins(self) -> None:
        found = list(spans.split((5, 30), [10, 20], ["a", "b"], "before"))
        assert found == [((5, 10), "before"), ((10, 20), "a"), ((20, 30), "b")]
        assert list(spans.split((5, 30), [], [], "before")) == [((5, 30), "before")]
