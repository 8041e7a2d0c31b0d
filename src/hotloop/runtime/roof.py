"""Measures what this machine can do: `python roof.py RESULT SECONDS`, in the user's interpreter.

A program of its own, run by its path: it needs torch and the standard library, and nothing else of
ours. The result is JSON and is written anew after every figure, so that whatever ends the program
early takes away only what was not measured yet. A figure that cannot be had is missing.

Products and copies are of random numbers: zeros take less power, and flatter a GPU. On a GPU a
figure is the median of calls after warming up, by its own clock: clocks sink under load, and the
best call would be a boost that no job keeps. On a CPU it is the best round: other work on the
machine only ever takes away.

Each figure of the CPU is taken in a fork. A product in a format that the processor claims and the
virtual machine lacks dies by SIGILL, and one that is emulated takes for ever; both cost only
themselves so. A fork is cheap, and safe as long as no operator has run and CUDA has not been woken:
so the CPU comes first.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import resource
import signal
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

EDGES_ON_CPU = (256, 1024, 2048, 4096)
EDGES_ON_GPU = (8192, 4096, 2048)
"""The largest that fits. Smaller products do not fill a large GPU."""
SLOW_CALL = 0.1
"""Seconds. Larger products would say no more, and take longer."""
CPU_COPY = 2**29
"""Bytes: beyond any cache, in most machines."""
GPU_COPY = 2**30
HOST_COPY = 2**28
CPU_SECONDS = 0.2
GPU_SECONDS = 0.5
"""Of measuring, for a figure or one size of it, roughly."""
LIMIT_APART = 6.0
"""Seconds. What is slower in a fork is given up, and what it told until then is taken."""

Tell = Callable[[float], None]


def main(path: str, seconds: float) -> None:
    signal.alarm(math.ceil(seconds))  # also when nobody is left who would end us
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a fork may crash, and leaves no dump
    import torch

    found = Found(path, os.getppid())
    found.facts(torch=str(torch.__version__), threads=torch.get_num_threads(), device="cpu")
    on_cpu(torch, found)
    if torch.cuda.is_available():
        found.facts(device=torch.cuda.get_device_name(0))
        on_gpu(torch, found)


class Found:
    """The figures so far, and on disk."""

    def __init__(self, path: str, parent: int) -> None:
        self._path = path
        self._parent = parent
        self.values: dict[str, Any] = {}

    def facts(self, **values: object) -> None:
        self.values.update(values)
        self._write()

    def figure(self, name: str, measure: Callable[[], float | None]) -> None:
        """`name` may be inside a table: `cpu_matrix_flops.float32`."""
        if os.getppid() != self._parent:
            os._exit(1)  # nobody waits for it any more
        try:
            value = measure()
        except Exception:  # out of memory, a format this device lacks: unknown, and on to the next
            return
        if value is None or not 0 < value < math.inf:
            return
        table, _, inner = name.rpartition(".")
        (self.values.setdefault(table, {}) if table else self.values)[inner] = value
        self._write()

    def _write(self) -> None:
        partial = self._path + ".partial"
        with open(partial, "w", encoding="utf-8") as file:
            json.dump(self.values, file)
        os.replace(partial, self._path)


def on_cpu(torch: Any, found: Found) -> None:
    for name in ("float32", "bfloat16", "float16"):
        product = partial(cpu_products, torch, name, torch.get_num_threads())
        found.figure(f"cpu_matrix_flops.{name}", partial(apart, product))
    alone = partial(cpu_products, torch, "float32", 1)
    found.figure("cpu_matrix_flops_one_thread", partial(apart, alone))
    found.figure("cpu_memory_bandwidth", partial(apart, partial(cpu_copy, torch, CPU_COPY)))
    if not torch.cuda.is_available():
        found.figure("launch_seconds", partial(apart, partial(cpu_launch, torch)))


def apart(work: Callable[[Tell], None], limit: float = LIMIT_APART) -> float | None:
    """The last figure that `work` told, in a fork that may crash, hang or be killed for memory."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _alone(work, writing, limit)
    os.close(writing)
    with open(reading, encoding="ascii") as pipe:
        told = pipe.read().split("\n")[:-1]  # what follows the last end of line was cut off
    os.waitpid(child, 0)
    return float(told[-1]) if told else None


def _alone(work: Callable[[Tell], None], writing: int, limit: float) -> None:
    def tell(value: float) -> None:
        os.write(writing, f"{value!r}\n".encode())

    status = 1
    with contextlib.suppress(BaseException):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, limit)
        work(tell)
        status = 0
    os._exit(status)


def cpu_products(torch: Any, precision: str, threads: int, tell: Tell) -> None:
    """Ever larger products, until one takes long enough; tells the best rate so far."""
    torch.set_num_threads(threads)
    dtype, best = getattr(torch, precision), 0.0
    for edge in EDGES_ON_CPU:
        left, right = (torch.randn(edge, edge).to(dtype) for _ in range(2))
        result = torch.empty(edge, edge, dtype=dtype)
        seconds = best_of(partial(torch.mm, left, right, out=result))
        best = max(best, 2 * edge**3 / seconds)
        tell(best)
        if seconds > SLOW_CALL:
            return


def cpu_copy(torch: Any, size: int, tell: Tell) -> None:
    block = min(size // 4, 2**20)  # drawing all of it would take longer than copying it
    source = torch.rand(block).repeat(size // 4 // block)
    target = torch.zeros_like(source)
    tell(2 * size / best_of(partial(target.copy_, source)))


def cpu_launch(torch: Any, tell: Tell) -> None:
    tell(launch(torch, "cpu"))


def best_of(work: Callable[[], object], seconds: float = CPU_SECONDS) -> float:
    """Seconds of the quickest call, after one that does not count."""
    work()
    best, spent, calls = math.inf, 0.0, 0
    while calls < 3 or spent < seconds:
        start = time.perf_counter()
        work()
        took = time.perf_counter() - start
        best, spent, calls = min(best, took), spent + took, calls + 1
    return best


def launch(torch: Any, device: str, calls: int = 500) -> float:
    """Seconds of the CPU's that one tiny operator takes. Few calls: a GPU's queue is finite."""
    tiny = torch.zeros(1, device=device)
    times = []
    for _ in range(20):
        if device != "cpu":
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            tiny.add_(1)
        times.append((time.perf_counter() - start) / calls)
    return min(times[1:])


def on_gpu(torch: Any, found: Found) -> None:
    for name in gpu_precisions(torch):
        found.figure(f"matrix_flops.{name}", partial(gpu_products, torch, name))
    found.figure("memory_bandwidth", partial(gpu_copy, torch, GPU_COPY))
    found.figure("host_to_device_pinned", partial(copy_to_gpu, torch, True))
    found.figure("host_to_device_pageable", partial(copy_to_gpu, torch, False))
    found.figure("launch_seconds", partial(launch, torch, "cuda"))


def gpu_precisions(torch: Any) -> list[str]:
    """What the hardware itself has: torch emulates the rest, or silently uses another format."""
    if torch.version.hip is not None:
        return ["float32", "bfloat16", "float16"]
    if torch.cuda.get_device_capability(0) < (8, 0):
        return ["float32", "float16"]
    return ["float32", "tf32", "bfloat16", "float16"]


def gpu_products(torch: Any, precision: str) -> float | None:
    # The older setter: after the newer one, what reads the older one raises.
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    dtype = torch.float32 if precision == "tf32" else getattr(torch, precision)
    for edge in EDGES_ON_GPU:
        with contextlib.suppress(torch.cuda.OutOfMemoryError):
            left, right = (torch.randn(edge, edge, device="cuda", dtype=dtype) for _ in range(2))
            product = partial(torch.mm, left, right, out=torch.empty_like(left))
            return 2 * float(edge) ** 3 / median_of(torch, product)
    return None


def gpu_copy(torch: Any, size: int) -> float | None:
    while size >= 2**26:
        with contextlib.suppress(torch.cuda.OutOfMemoryError):
            source = torch.rand(size // 4, device="cuda")
            return 2 * size / median_of(torch, partial(torch.empty_like(source).copy_, source))
        size //= 4
    return None


def copy_to_gpu(torch: Any, pinned: bool) -> float:
    source = torch.rand(HOST_COPY // 4, pin_memory=pinned)
    target = torch.empty(HOST_COPY // 4, device="cuda")
    return HOST_COPY / median_of(torch, partial(target.copy_, source, non_blocking=True))


def median_of(torch: Any, work: Callable[[], object], seconds: float = GPU_SECONDS) -> float:
    """Seconds a call by the GPU's own clock: half the time warms up, half counts."""
    timed(torch, work, 1)  # loads and chooses a kernel
    once = timed(torch, work, 1)[0]
    calls = max(3, min(200, int(seconds / 2 / max(once, 1e-6))))
    timed(torch, work, calls)
    return statistics.median(timed(torch, work, calls))


def timed(torch: Any, work: Callable[[], object], calls: int) -> list[float]:
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(calls + 1)]
    marks[0].record()
    for mark in marks[1:]:
        work()
        mark.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) / 1000 for start, end in pairwise(marks)]


if __name__ == "__main__":
    sys.path.pop(0)  # the folder this file lies in: none of its neighbours is to be imported
    main(sys.argv[1], float(sys.argv[2]))
