from __future__ import annotations

from hotloop.machine import GpuState
from hotloop.trial import power
from hotloop.trial.power import PowerMeter


class Watch:
    """A GPU that draws 100 W, or none at all."""

    def __init__(self, there: bool = True, joules: bool = True) -> None:
        self.looks = 0
        self._there = there
        self._joules = joules

    def look(self) -> GpuState | None:
        self.looks += 1
        if not self._there:
            return None
        joules = 5_000.0 + 20 * self.looks if self._joules else None
        return GpuState(90, 2**30, 60, 100.0, joules, 1980, 0)


def looked(watch: Watch, seconds: float) -> PowerMeter:
    meter = PowerMeter(watch)  # type: ignore[arg-type]
    for tick in range(round(seconds * 20)):
        meter.look(100 + tick / 20)
    return meter


def test_it_looks_five_times_a_second() -> None:
    log = looked(Watch(), 10).log()
    assert log is not None
    assert 40 <= len(log) <= 51
    assert log.joules[:3] == [0.0, 20.0, 40.0]
    assert log.time_ns == sorted(log.time_ns)


def test_the_last_look_is_taken_however_soon_it_is() -> None:
    watch = Watch()
    meter = looked(watch, 1)
    seen = watch.looks
    meter.look(100.96)
    assert watch.looks == seen
    meter.look(100.97, last=True)
    assert watch.looks == seen + 1
    gone = Watch(there=False)
    looked(gone, 1).look(102, last=True)
    assert gone.looks == 1


def test_without_a_gpu_it_looks_once_and_never_again() -> None:
    watch = Watch(there=False)
    assert looked(watch, 10).log() is None
    assert watch.looks == 1


def test_what_the_gpu_does_not_tell_is_none() -> None:
    log = looked(Watch(joules=False), 1).log()
    assert log is not None
    assert set(log.joules) == {None}


def test_a_long_trial_is_looked_at_more_seldom() -> None:
    log = looked(Watch(), 1_000).log()
    assert log is not None
    assert power.MOST_LOOKS / 3 < len(log) <= power.MOST_LOOKS + 1
    assert log.joules[-1] is not None and log.joules[-1] > 0
