"""Makers of jobs on a GPU that is not there.

A CPU queues kernels, a GPU runs them in order, each at its own pace; whoever waits, waits as long
as it would take. So a test can take away what a rule found, and see whether the prediction holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hotloop.diagnose.base import Case
from hotloop.figures import figures, training_loader
from hotloop.inspection import Frame, Inspection, Kernels, Operators, Synchronisation
from hotloop.measurement import Kind, Memory, Precision, Software
from hotloop.roof import Roof
from tests.builders import GPU, Log, loader, measurement, model
from tests.diagnose.making import samples

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
PRODUCT = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64__5x_cublas"
PRODUCT_IN_FP32 = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_ffma__5x_cublas"
PRODUCT_IN_TF32 = "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32__5x_cublas"
PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
PINNED = "Memcpy HtoD (Pinned -> Device)"

QUEUE = 12
"""Kernels: a CPU that is further ahead is held up. A thousand in reality."""

H200 = Roof(
    device=GPU,
    matrix_flops={"float32": 51e12, "tf32": 389e12, "bfloat16": 742e12, "float16": 711e12},
    memory_bandwidth=4.22e12,
    host_to_device_pinned=55e9,
    host_to_device_pageable=8.9e9,
    launch_seconds=4e-6,
    cpu_matrix_flops={"float32": 1e12},
    threads=16,
)


def line(number: int = 40, file: str = "train.py", function: str = "main") -> Frame:
    return Frame(f"/job/{file}", number, function, is_users=True, source="loss.item()")


def inside(function: str) -> Frame:
    return Frame("/lib/metrics.py", 7, function)


class Scene:
    """A CPU and a GPU at work. Times in milliseconds."""

    def __init__(self, overhead: float = 0.0) -> None:
        self._overhead = overhead
        self.log = Log()
        self.names: list[str] = []
        self.kernels: list[tuple[int, int, int]] = []
        self.waits: dict[tuple[str, int], Synchronisation] = {}
        self._free_ns = 0
        self._at: list[Frame] = []
        self.seen: list[tuple[float, float, list[Frame]]] = []
        """When, for how long and where the CPU was, if the job says where it is."""

    def at(self, *stack: Frame) -> Scene:
        """From here on the CPU runs this line."""
        self._at = list(stack)
        return self

    @property
    def now_ns(self) -> int:
        return self.log._now

    def cpu(self, ms: float) -> Scene:
        if self._at and ms:
            self.seen.append((self.now_ns / 1e6, ms, self._at))
        self.log.wait(ms)
        return self

    def run(self, name: str, ms: float, queueing: float = 0.005) -> Scene:
        """One kernel, queued, as soon as there is room in the queue."""
        self.cpu(queueing + self._overhead)
        if len(self.kernels) >= QUEUE:
            _, start, duration = self.kernels[-QUEUE]
            self.cpu(max(start + duration - self.now_ns, 0) / 1e6)
        if name not in self.names:
            self.names.append(name)
        start, duration = max(self.now_ns, self._free_ns), round(ms * 1e6)
        self.kernels.append((self.names.index(name), start, duration))
        self._free_ns = start + duration
        return self

    def wait(
        self, what: str = ".item()", stack: list[Frame] | None = None, timed: bool = True
    ) -> Scene:
        """Until the GPU has done everything."""
        stack = [line()] if stack is None else stack
        begin = self.now_ns
        self._catch_up()
        seen = self.waits.setdefault((what, stack[-1].line), Synchronisation(what, stack, [], []))
        seen.time_ns.append(begin)
        seen.seconds.append((self.now_ns - begin) / 1e9 if timed else 0.0)
        return self

    def data(self, ms: float, n: int = 8) -> Scene:
        self.log.data(ms, n)
        return self

    def copy(self, ms: float, size: int, name: str = PAGEABLE) -> Scene:
        """From ordinary memory it blocks; from pinned memory it is only queued."""
        blocks = name == PAGEABLE
        with self.log.inside(Kind.COPY_BEGIN, 0 if blocks else 1, size):
            self.run(name, ms)
            if blocks:
                self._catch_up()
        return self

    def train(self, forward: Callable[[], Any], backward: Callable[[], Any] | None = None) -> Scene:
        with self.log.inside(Kind.FORWARD_BEGIN, 0, 8):
            forward()
        with self.log.inside(Kind.BACKWARD_BEGIN):
            (backward or (lambda: None))()
        return self

    def step(self, body: Callable[[], Any] | None = None) -> Scene:
        with self.log.inside(Kind.OPTIMIZER_BEGIN):
            (body or (lambda: None))()
        return self

    def _catch_up(self) -> None:
        self.cpu(max(self._free_ns - self.now_ns, 0) / 1e6)


def case(
    body: Callable[[Scene], Any],
    steps: int = 24,
    window: int = 8,
    overhead: float = 0.0,
    **changes: Any,
) -> Case:
    """A job whose every step is this. `overhead`: milliseconds that looking adds to a kernel."""
    timed, looked = Scene(), Scene(overhead)
    begin_ns = 0
    for number in range(steps):
        body(timed)
        if number == steps - window:
            begin_ns = looked.now_ns
        body(looked)
    made = on_gpu(timed)
    found = figures(made)
    assert found is not None
    kernels = _kernels(looked, begin_ns, looked.now_ns, window)
    inspection = Inspection(
        steps=steps,
        samples=samples(*looked.seen),
        kernels=kernels,
        synchronisations=list(looked.waits.values()),
    )
    whole = Case(
        measurement=made,
        figures=found,
        loader=training_loader(made),
        cores=16,
        inspection=inspection,
        looked=replace(made, events=looked.log.events),
        roof=H200,
        gpus=1,
    )
    return replace(whole, **changes)


def on_gpu(scene: Scene) -> Any:
    plain = measurement(scene.log.events)
    inventory = replace(
        plain.inventory,
        models=[model(devices=["cuda:0"])],
        loaders=[loader(pinned=False)],
        precision=Precision(tf32_cudnn=True),
    )
    memory = Memory(2**30, 2 * 2**30, 3 * 2**30, 140 * 2**30)
    software = Software(python="3.11.9", torch="2.13.0", device=GPU)
    return replace(plain, inventory=inventory, memory=memory, software=software)


def look_at(made: Case, **changes: Any) -> Case:
    """With other things seen in the trial that was looked into."""
    assert made.inspection is not None
    return replace(made, inspection=replace(made.inspection, **changes))


def operators(**changes: Any) -> Operators:
    return replace(Operators(steps=1, count=100, seconds=0.01), **changes)


def script(made: Case, **changes: Any) -> Case:
    """With another inventory."""
    inventory = replace(made.measurement.inventory, **changes)
    return replace(made, measurement=replace(made.measurement, inventory=inventory))


def blind(made: Case) -> Case:
    """The GPU's counters could not be read."""
    return look_at(made, kernels=None)


def gain(body: Callable[[Scene], Any], fixed: Callable[[Scene], Any]) -> float:
    """The share of a step that is really gone."""
    plain, without = case(body).figures.step.mean, case(fixed).figures.step.mean
    return 1 - without / plain


def _kernels(scene: Scene, begin_ns: int, end_ns: int, steps: int) -> Kernels:
    kept = [each for each in scene.kernels if begin_ns < each[1] + each[2] and each[1] < end_ns]
    return Kernels(
        steps=steps,
        begin_ns=begin_ns,
        end_ns=end_ns,
        names=list(scene.names),
        name=[name for name, _, _ in kept],
        start_ns=[start for _, start, _ in kept],
        duration_ns=[duration for _, _, duration in kept],
    )
