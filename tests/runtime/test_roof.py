"""The program that measures, on tiny sizes. It forks, so each figure here is a real fork's."""

from __future__ import annotations

import faulthandler
import json
import math
import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hotloop.runtime import roof
from hotloop.runtime.roof import Found, apart


@pytest.fixture
def found(tmp_path: Path) -> Found:
    return Found(str(tmp_path / "roof.json"), os.getppid())


def written(tmp_path: Path) -> Any:
    return json.loads((tmp_path / "roof.json").read_text())


class TestFound:
    def test_every_figure_is_on_disk_at_once(self, found: Found, tmp_path: Path) -> None:
        found.facts(device="cpu")
        found.figure("launch_seconds", lambda: 1e-6)
        found.figure("matrix_flops.tf32", lambda: 3e14)
        found.figure("matrix_flops.float32", lambda: 5e13)
        tables = {"tf32": 3e14, "float32": 5e13}
        expected = {"device": "cpu", "launch_seconds": 1e-6, "matrix_flops": tables}
        assert written(tmp_path) == expected

    @pytest.mark.parametrize("value", [None, 0.0, -1.0, math.inf, math.nan])
    def test_what_is_no_rate_is_missing(
        self, value: float | None, found: Found, tmp_path: Path
    ) -> None:
        found.facts(device="cpu")
        found.figure("launch_seconds", lambda: value)
        assert written(tmp_path) == {"device": "cpu"}

    def test_one_that_fails_takes_nothing_else_away(self, found: Found, tmp_path: Path) -> None:
        def fail() -> float:
            raise MemoryError

        found.figure("memory_bandwidth", fail)
        found.figure("launch_seconds", lambda: 1e-6)
        assert written(tmp_path) == {"launch_seconds": 1e-6}


class TestApart:
    def test_the_last_that_was_told(self) -> None:
        def work(tell: Callable[[float], None]) -> None:
            tell(1.0)
            tell(2.5)

        assert apart(work) == 2.5

    def test_nothing_told(self) -> None:
        assert apart(lambda tell: None) is None

    @pytest.mark.parametrize("end", [signal.SIGILL, signal.SIGKILL])
    def test_a_crash_takes_only_what_was_not_told(self, end: signal.Signals) -> None:
        def work(tell: Callable[[float], None]) -> None:
            faulthandler.disable()  # pytest's own, which would describe the crash at length
            tell(4.0)
            os.kill(os.getpid(), end)

        assert apart(work) == 4.0

    def test_one_that_raises(self) -> None:
        def work(tell: Callable[[float], None]) -> None:
            raise RuntimeError("not implemented for 'Half'")

        assert apart(work) is None

    def test_one_that_takes_for_ever(self) -> None:
        def work(tell: Callable[[float], None]) -> None:
            tell(1.0)
            while True:
                pass

        assert apart(work, limit=0.2) == 1.0


class TestOnCpu:
    def test_products(self, torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(roof, "EDGES_ON_CPU", (8, 16))
        monkeypatch.setattr(roof, "SLOW_CALL", 60.0)
        told: list[float] = []
        roof.cpu_products(torch, "float32", 1, told.append)
        assert len(told) == 2
        assert 0 < told[0] <= told[1]  # the best so far

    def test_a_slow_product_is_the_last(self, torch: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(roof, "EDGES_ON_CPU", (8, 16))
        monkeypatch.setattr(roof, "SLOW_CALL", 0.0)
        told: list[float] = []
        roof.cpu_products(torch, "float32", 1, told.append)
        assert len(told) == 1

    def test_a_copy_and_an_operator(self, torch: Any) -> None:
        told: list[float] = []
        roof.cpu_copy(torch, 2**16, told.append)
        roof.cpu_launch(torch, told.append)
        assert all(value > 0 for value in told) and len(told) == 2

    def test_the_quickest_call_counts(self) -> None:
        calls: list[int] = []
        assert roof.best_of(lambda: calls.append(1), seconds=0.0) > 0
        assert len(calls) == 4  # one to warm up, three that count


class TestOnGpu:
    @pytest.mark.parametrize(
        ("hip", "capability", "precisions"),
        [
            (None, (9, 0), ["float32", "tf32", "bfloat16", "float16"]),
            (None, (7, 5), ["float32", "float16"]),
            ("6.2", (9, 4), ["float32", "bfloat16", "float16"]),
        ],
    )
    def test_formats_that_the_hardware_has(
        self, hip: str | None, capability: tuple[int, int], precisions: list[str]
    ) -> None:
        cuda = SimpleNamespace(get_device_capability=lambda device: capability)
        torch = SimpleNamespace(version=SimpleNamespace(hip=hip), cuda=cuda)
        assert roof.gpu_precisions(torch) == precisions
