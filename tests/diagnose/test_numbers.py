from __future__ import annotations

from dataclasses import fields, replace

import pytest

from hotloop.diagnose.base import Case
from hotloop.diagnose.numbers import Numbers, numbers
from hotloop.energy import PowerLog
from hotloop.inspection import Allocator
from hotloop.measurement import Precision
from hotloop.roof import Roof
from tests.builders import model
from tests.diagnose.gpu_making import (
    PINNED,
    PRODUCT,
    Scene,
    blind,
    case,
    look_at,
    operators,
    script,
)

MS = 1_000_000


def job(scene: Scene) -> None:
    """A step of 10 ms: 2 of data, during which the GPU has nothing to do, and 8 of products."""
    scene.data(2).copy(0.001, 1_000, PINNED)
    scene.train(lambda: scene.run(PRODUCT, 8, queueing=0).cpu(8)).step()


def counted(**changes: object) -> Case:
    precision = changes.pop("precision", None)
    made = look_at(case(job), operators=operators(**changes))
    return script(made, precision=precision) if precision else made


class TestArithmetic:
    def test_flops_a_step_and_a_sample(self) -> None:
        found = numbers(counted(steps=2, flops={"bfloat16": 4e12}))
        assert found.flops_step == 2e12
        assert found.flops_sample == pytest.approx(2e12 / 8)
        assert found.flops_second == pytest.approx(2e12 / 10e-3, rel=0.01)
        assert not found.flops_are_lower_bound

    def test_an_operator_without_a_formula_makes_it_a_lower_bound(self) -> None:
        assert numbers(counted(flops={}, without_formula={"lstm": 2})).flops_are_lower_bound

    def test_utilisation_weighs_formats_by_their_time(self) -> None:
        flops = {"bfloat16": 742e12 * 4e-3, "float32": 51e12 * 2e-3}
        assert numbers(counted(flops=flops)).mfu_measured == pytest.approx(0.6, rel=0.01)

    def test_against_the_data_sheet_it_is_less(self) -> None:
        found = numbers(counted(flops={"bfloat16": 742e12 * 4e-3}))
        assert found.mfu_measured is not None
        assert found.mfu_datasheet == pytest.approx(found.mfu_measured * 742 / 989.4)

    @pytest.mark.parametrize(
        ("precision", "convolved", "rate"),
        [
            (Precision(tf32_matmul=True), 0.0, 389e12),
            (Precision(tf32_cudnn=True), 0.0, 51e12),
            (Precision(tf32_cudnn=True), 0.7, 389e12),
            (Precision(tf32_cudnn=True), 1.0, 389e12),
            (Precision(), 1.0, 51e12),
        ],
    )
    def test_float32_is_tf32_where_that_is_on(
        self, precision: Precision, convolved: float, rate: float
    ) -> None:
        flops = {"float32": rate * 5e-3}
        of_convolutions = {"float32": convolved * flops["float32"]}
        found = numbers(
            counted(flops=flops, convolution_flops=of_convolutions, precision=precision)
        )
        assert found.mfu_measured == pytest.approx(0.5, rel=0.01)

    def test_an_unknown_rate_takes_the_figure_away(self) -> None:
        assert numbers(counted(flops={"float64": 1e12})).mfu_measured is None
        assert numbers(replace(counted(flops={"float32": 1e9}), roof=None)).mfu_measured is None

    def test_on_a_cpu_against_the_cpus_roof(self) -> None:
        made = counted(flops={"float32": 1e12 * 5e-3})
        software = replace(made.measurement.software, device="cpu")
        roof = Roof(cpu_matrix_flops={"float32": 1e12}, cpu_memory_bandwidth=1e10)
        made = replace(made, measurement=replace(made.measurement, software=software), roof=roof)
        found = numbers(made)
        assert found.mfu_measured == pytest.approx(0.5, rel=0.01)
        assert found.mfu_datasheet is None
        assert found.host_to_device_bytes_step is None


class TestTraffic:
    def test_bandwidth_and_intensity(self) -> None:
        found = numbers(counted(flops={"bfloat16": 1e12}, bytes=4.22e12 * 5e-3))
        assert found.bandwidth_utilisation == pytest.approx(0.5, rel=0.01)
        assert found.intensity == pytest.approx(1e12 / 2.11e10)

    def test_the_gpus_own_record(self) -> None:
        found = numbers(case(job))
        assert found.kernels_step == pytest.approx(2, rel=0.1)
        assert found.gpu_busy == pytest.approx(0.8, abs=0.02)
        assert found.host_to_device_bytes_step == pytest.approx(1_000, rel=0.1)

    def test_memory(self) -> None:
        allocator = Allocator(retries=3, reserved=100, allocated=10, peak_allocated=60)
        found = numbers(look_at(case(job), allocator=allocator))
        assert found.allocator_retries == 3
        assert found.fragmentation == pytest.approx(0.4)

    def test_graph_breaks_only_where_something_is_compiled(self) -> None:
        made = look_at(case(job), graph_breaks={"print": 2, "item": 1}, scaler_skips=4)
        assert numbers(made).graph_breaks is None
        found = numbers(script(made, models=[model(compiled=True)]))
        assert (found.graph_breaks, found.scaler_skips) == (3, 4)


class TestEnergy:
    def power(self, **changes: object) -> PowerLog:
        """400 W all the time, looked at every 20 ms from before the steps until after."""
        times = [at * 20 * MS for at in range(-1, 20)]
        log = PowerLog(
            times,
            joules=[400 * at / 1e9 for at in times],
            watts=[400.0 for _ in times],
            temperature=[60 for _ in times],
            sm_clock=[1980 for _ in times],
            utilisation=[80 for _ in times],
            throttling=[0x4 if at % 2 else 0 for at in range(len(times))],
        )
        return replace(log, **changes)  # type: ignore[arg-type]

    def test_joules_of_a_step_and_a_sample(self) -> None:
        found = numbers(case(job, power=self.power())).footprint
        assert found is not None
        assert found.watts == pytest.approx(400)
        assert found.joules_step == pytest.approx(4, rel=0.01)
        assert found.joules_sample == pytest.approx(0.5, rel=0.1)
        assert found.throttled == pytest.approx(0.5, abs=0.1)
        assert (found.hottest, found.sm_clock) == (60, 1980)
        assert found.utilisation == pytest.approx(0.8)

    def test_carbon_by_the_intensity_that_is_set(self) -> None:
        found = numbers(case(job, power=self.power()), grams_per_kwh=100.0).footprint
        assert found is not None and found.joules_sample is not None
        kwh = found.joules_sample * 1e6 / 3.6e6
        assert found.kwh_million_samples == pytest.approx(kwh)
        assert found.co2_million_samples == pytest.approx(kwh * 100)
        assert found.kwh_epoch == pytest.approx(100 * 4 / 3.6e6, rel=0.01)

    def test_by_the_power_where_there_is_no_counter(self) -> None:
        log = self.power(joules=[None] * 21)
        found = numbers(case(job, power=log)).footprint
        assert found is not None and found.watts == pytest.approx(400)

    @pytest.mark.parametrize(("looks", "known"), [(17, True), (8, False)])
    def test_most_of_the_steps_are_enough(self, looks: int, known: bool) -> None:
        whole = self.power()
        columns = {name: column[:looks] for name, column in vars(whole).items()}
        found = numbers(case(job, power=PowerLog(**columns))).footprint
        assert (found is not None) is known
        if found is not None:
            assert found.joules_step == pytest.approx(4, rel=0.01)
            assert found.joules_sample == pytest.approx(0.5, rel=0.1)

    @pytest.mark.parametrize(
        "log", [None, PowerLog(), PowerLog([0, 1], [None, None], [None, None])]
    )
    def test_unknown_where_the_gpu_does_not_tell(self, log: PowerLog | None) -> None:
        assert numbers(case(job, power=log)).footprint is None


def test_what_was_not_looked_at_is_unknown_and_not_zero() -> None:
    found = numbers(replace(blind(case(job)), inspection=None, looked=None, roof=None))
    known = {"flops_are_lower_bound", "mfu_target", "host_to_device_bytes_step"}
    for field in fields(Numbers):
        assert (getattr(found, field.name) is not None) == (field.name in known), field.name
