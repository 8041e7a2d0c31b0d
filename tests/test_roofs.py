from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hotloop import installed, roofs
from hotloop.installed import Installed
from hotloop.machine import Gpu, Machine
from hotloop.roof import Roof
from hotloop.roof_process import Measured

HOST = Machine("Linux", "A CPU", 8, 2**34, (Gpu("H1", 1), Gpu("H2", 1)), "570.1")
TORCH = Installed(python="3.11.7", torch="2.13.0", cuda="13.0")
ROOF = Roof(device="H1", torch="2.13.0", threads=8, matrix_flops={"bfloat16": 7e14})


class Bench:
    """The process that measures, faked."""

    def __init__(self, roof: Roof | None = ROOF, finished: bool = True) -> None:
        self.measured = Measured(roof, finished)
        self.calls = 0

    def __call__(self, python: str, watch: Callable[[], None]) -> Measured:
        self.calls += 1
        watch()
        return self.measured


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    for name in roofs.THREAD_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(installed, "look", lambda python: TORCH)
    monkeypatch.setattr("hotloop.machine.describe", lambda: HOST)
    monkeypatch.setattr("psutil.cpu_percent", lambda seconds: 0.0)


def files(tmp_path: Path) -> list[Path]:
    return sorted(path for path in tmp_path.rglob("*") if path.is_file())


class TestKeeping:
    def test_measured_once(self) -> None:
        bench = Bench()
        first = roofs.of("python", measure=bench)
        assert first is not None
        assert (first.driver, first.cpu, first.device) == ("570.1", "A CPU", "H1")
        assert first.matrix_flops == {"bfloat16": 7e14}
        assert first.measured_on
        assert roofs.of("python", measure=bench) == first
        assert bench.calls == 1

    def test_again_when_asked(self) -> None:
        roofs.of("python", measure=Bench())
        bench = Bench(replace(ROOF, threads=4))
        again = roofs.of("python", measure=bench, remeasure=True)
        assert again is not None and again.threads == 4
        assert roofs.of("python", measure=bench) == again
        assert bench.calls == 1

    @pytest.mark.parametrize("text", ["", "{}", "[1", '{"key": 1}', "\xff"])
    def test_a_file_that_cannot_be_read_is_measured_again(self, text: str, tmp_path: Path) -> None:
        roofs.of("python", measure=Bench())
        (path,) = files(tmp_path)
        path.write_text(text, encoding="latin-1")
        bench = Bench()
        assert roofs.of("python", measure=bench) is not None
        assert bench.calls == 1
        assert json.loads(path.read_text())["roof"]["device"] == "H1"

    def test_a_cache_that_cannot_be_written_is_no_error(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "file").write_text("")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
        assert roofs.of("python", measure=Bench()) is not None

    def test_what_was_cut_off_is_handed_out_and_not_kept(self, tmp_path: Path) -> None:
        assert roofs.of("python", measure=Bench(finished=False)) is not None
        assert files(tmp_path) == []

    def test_a_roof_without_the_gpu_that_there_is_is_not_kept(self, tmp_path: Path) -> None:
        assert roofs.of("python", measure=Bench(Roof())) is not None
        assert files(tmp_path) == []

    def test_nothing_at_all(self, tmp_path: Path) -> None:
        assert roofs.of("python", measure=Bench(None, finished=False)) is None
        assert files(tmp_path) == []

    def test_one_that_fails_leaves_the_one_that_was_kept(self) -> None:
        first = roofs.of("python", measure=Bench())
        failed = Bench(None, finished=False)
        assert roofs.of("python", measure=failed, remeasure=True) == first
        assert roofs.of("python", measure=failed) == first

    def test_without_torch_nothing_is_begun(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(installed, "look", lambda python: Installed(python="3.11.7"))
        bench = Bench()
        assert roofs.of("python", measure=bench) is None
        assert bench.calls == 0

    def test_who_waits_is_told(self) -> None:
        told: list[str] = []
        for _ in range(2):
            roofs.of(
                "python",
                measure=Bench(),
                begins=lambda: told.append("begins"),
                watch=lambda: told.append("watch"),
            )
        assert told == ["begins", "watch"]

    def test_a_disk_is_read_anew_and_not_kept(self, tmp_path: Path) -> None:
        data = tmp_path / "data"
        data.mkdir()
        found = roofs.of("python", measure=Bench(), folder=str(data))
        assert found is not None and found.disk_read is None  # it holds nothing
        (path,) = files(tmp_path)
        assert json.loads(path.read_text())["roof"]["disk_read"] is None


class TestBesideOtherWork:
    def of(self, bench: Bench, busy: bool, **options: bool) -> Roof:
        found = roofs.of("python", measure=bench, is_busy=lambda: busy, **options)  # type: ignore[arg-type]
        assert found is not None
        return found

    def test_it_does_until_the_machine_is_quiet(self) -> None:
        bench = Bench()
        assert self.of(bench, busy=True).disturbed
        assert self.of(bench, busy=True).disturbed
        assert bench.calls == 1
        assert not self.of(bench, busy=False).disturbed
        assert not self.of(bench, busy=True).disturbed
        assert bench.calls == 2

    def test_it_does_not_replace_an_undisturbed_one(self) -> None:
        bench = Bench()
        self.of(bench, busy=False)
        assert self.of(bench, busy=True, remeasure=True).disturbed
        assert not self.of(bench, busy=True).disturbed

    @pytest.mark.parametrize(("percent", "busy"), [(5.0, False), (60.0, True)])
    def test_what_is_busy(
        self, percent: float, busy: bool, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("psutil.cpu_percent", lambda seconds: percent)
        assert roofs.busy() is busy


class TestKey:
    def test_all_that_a_roof_depends_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        keys = [roofs.key_of(TORCH, HOST)]
        keys.append(roofs.key_of(replace(TORCH, torch="2.11.0"), HOST))
        keys.append(roofs.key_of(TORCH, replace(HOST, driver="580")))
        keys.append(roofs.key_of(TORCH, replace(HOST, cpu="Another")))
        keys.append(roofs.key_of(TORCH, replace(HOST, cores=4)))
        monkeypatch.setenv("OMP_NUM_THREADS", "1")
        keys.append(roofs.key_of(TORCH, HOST))
        names = [key.file_name() for key in keys if key is not None]
        assert len(set(names)) == len(keys)

    @pytest.mark.parametrize(("visible", "gpu"), [("1", "H2"), ("", None), ("7", None)])
    def test_the_first_visible_gpu(
        self, visible: str, gpu: str | None, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
        key = roofs.key_of(TORCH, HOST)
        assert key is not None and key.gpu == gpu


class TestCache:
    @pytest.mark.parametrize("base", ["", "relative/cache"])
    def test_at_home_unless_said(
        self, base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", base)
        monkeypatch.setenv("HOME", str(tmp_path))
        assert roofs.cache() == tmp_path / ".cache" / "hotloop" / "roofs"

    def test_without_a_home(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr("os.path.expanduser", lambda path: path)
        assert roofs.of("python", measure=Bench()) is not None
