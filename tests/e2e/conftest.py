"""A project folder, a home and a temporary folder of a test's own, and hotloop at work in them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

import hotloop

PACKAGE = str(Path(hotloop.__file__).parent)
MARK = "HOTLOOP_E2E"
LONG = 120.0
"""Seconds. No test waits for it unless something hangs."""

NO_COMPILER = (
    "import sys, types; sys.modules['torch._dynamo'] = types.SimpleNamespace("
    "disable=lambda made, *_, **__: made, graph_break=lambda *_: None, "
    "set_stance=lambda *_, **__: None)"
)
"""One line, after which torch has no compiler. Every optimizer imports it, only to keep it out, and
that takes as long as importing torch itself. Not for what compiles, nor checkpoints."""
TORCH = f"{NO_COMPILER}; import torch\n"

MODEL = (
    TORCH
    + """\
from torch import nn
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def step():
    optimizer.zero_grad()
    model(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
"""
)
TRAIN = MODEL + "for _ in range(1_000_000):\n    step()\n"
FEW_STEPS = MODEL + "for _ in range(4):\n    step()\n"


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one line of ours: the last on stderr."""
        first = "hotloop: measuring "
        ours = [line for line in self.err.splitlines() if line.startswith("hotloop: ")]
        said = [line for line in ours if not line.startswith(first)]
        assert len(said) == 1, self
        assert self.err.endswith(said[0] + "\n"), self
        return said[0]

    def expect(self, code: int, says: str, remedy: str = "") -> None:
        assert self.code == code, self
        assert says in self.sentence, self
        assert remedy in self.sentence.partition(says)[2], self
        assert PACKAGE not in self.out + self.err, self
        assert (remedy != "") or code in (129, 130, 143), "an error has a remedy"


class Desk:
    """Everything a user has on the table."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.project, self.home = base / "project", base / "home"
        for folder in (self.project, self.home):
            folder.mkdir()
        # Sockets lie in it, between a loader and its workers: their paths may have 107 characters.
        self.tmp = Path(tempfile.mkdtemp(prefix="desk-"))
        weakref.finalize(self, shutil.rmtree, self.tmp, ignore_errors=True)
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "HOTLOOP"))}
        kept.pop("VIRTUAL_ENV", None)
        self.executable = sys.executable
        self.mark = uuid.uuid4().hex
        self.env = {**kept, "HOME": str(self.home), "TMPDIR": str(self.tmp), MARK: self.mark}

    def write(self, text: str | bytes, name: str = "train.py") -> str:
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return name

    def hotloop(self, *words: str, **more: Any) -> Ended:
        installed = Path(sys.executable).with_name("hotloop")
        # Where it runs from its source, as on a machine that nothing can be installed on.
        command = [str(installed)] if installed.exists() else [sys.executable, "-m", "hotloop"]
        return self.call([*command, *words], **more)

    def python(self, *words: str, **more: Any) -> Ended:
        """Without hotloop, to compare."""
        return self.call([sys.executable, *words], **more)

    def call(self, argv: list[str], stdin: str = "", env: dict[str, str] | None = None) -> Ended:
        # Files rather than pipes: what is left behind would hold a pipe open, unseen.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            done = subprocess.run(
                argv,
                cwd=self.project,
                env={**self.env, **(env or {})},
                input=stdin.encode(),
                stdout=out,
                stderr=err,
                timeout=LONG,
            )
            texts = []
            for stream in (out, err):
                stream.seek(0)
                texts.append(stream.read().decode("utf-8", "surrogateescape"))
        return Ended(done.returncode, *texts)

    def start(
        self, *words: str, env: dict[str, str] | None = None, stdin: int = subprocess.DEVNULL
    ) -> subprocess.Popen[bytes]:
        """hotloop in a process group of its own, as a shell starts it."""
        return subprocess.Popen(
            [str(Path(sys.executable).with_name("hotloop")), *words],
            cwd=self.project,
            env={**self.env, **(env or {})},
            stdin=stdin,
            stdout=(self.base / "out").open("wb"),
            stderr=(self.base / "err").open("wb"),
            process_group=0,
        )

    def finish(self, process: subprocess.Popen[bytes]) -> Ended:
        code = process.wait(LONG)
        return Ended(code, (self.base / "out").read_text(), (self.base / "err").read_text())

    def profile(self, *words: str, **more: Any) -> Ended:
        """`hotloop profile`, timing alone, and that it left nothing behind but its study."""
        before = self.files()
        ended = self.hotloop("profile", "--no-look", *words, **more)
        self.expect_clean(before)
        return ended

    def expect_clean(self, before: dict[str, object]) -> None:
        assert not self.survivors()
        assert not [path.name for path in self.tmp.iterdir()]
        assert self.files() == before

    def files(self) -> dict[str, object]:
        """All the user's files, byte for byte, without our own folder."""
        return {
            str(path): (
                path.lstat().st_mode,
                path.read_bytes() if path.is_file() else None,
                path.stat().st_mtime_ns if path.is_file() else None,
            )
            for folder in (self.project, self.home)
            for path in sorted(folder.rglob("*"))
            if ".hotloop" not in path.parts
        }

    def running(self) -> list[psutil.Process]:
        """All processes that descend from a call of this desk's, wherever they moved."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, OSError):
                if process.environ().get(MARK) == self.mark:
                    found.append(process)
        return found

    def survivors(self, seconds: float = 3.0) -> list[list[str]]:
        """What still runs; a process that was just killed may take a moment to vanish."""
        with contextlib.suppress(TimeoutError):
            until(lambda: not self.running(), seconds)
        return [process.cmdline() for process in self.running()]

    @property
    def trial(self) -> Path:
        (trial,) = self.project.glob(".hotloop/*/trial-1")
        return trial

    def study(self) -> Any:
        (path,) = self.project.glob(".hotloop/*/study.json")
        return json.loads(path.read_text())

    def printed(self) -> str:
        return (self.trial / "output.log").read_text()

    def wait_for_output(self, text: str) -> None:
        until(lambda: any(text in log.read_text() for log in self._logs()))

    def wait_for_steps(self) -> None:
        until(lambda: any(self._number(path) > 0 for path in self._progress()))

    def _logs(self) -> list[Path]:
        return list(self.project.glob(".hotloop/*/trial-1/output.log"))

    def _progress(self) -> list[Path]:
        return list(self.project.glob(".hotloop/*/trial-1/progress"))

    @staticmethod
    def _number(path: Path) -> int:
        return int(path.read_text().strip() or 0)


def until(happened: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        if time.monotonic() > deadline:
            raise TimeoutError
        time.sleep(0.02)


@contextlib.contextmanager
def cleared(base: Path) -> Iterator[Desk]:
    """A desk; what a failed test left running on it is ended."""
    desk = Desk(base)
    try:
        yield desk
    finally:
        for process in desk.running():
            with contextlib.suppress(psutil.Error):
                process.send_signal(signal.SIGKILL)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with cleared(tmp_path) as desk:
        yield desk


@pytest.fixture(scope="module")
def shared_desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """For the tests of one run that was made once."""
    with cleared(tmp_path_factory.mktemp("desk")) as desk:
        yield desk


@pytest.fixture(scope="session")
def pool() -> Iterator[ThreadPoolExecutor]:
    """For what imports torch, which is most of the time these tests take: on two cores."""
    with ThreadPoolExecutor(2) as pool:
        yield pool


@pytest.fixture(scope="session")
def waiting() -> Iterator[ThreadPoolExecutor]:
    """For what waits most of its time for a limit."""
    with ThreadPoolExecutor(8) as pool:
        yield pool


def chosen(request: pytest.FixtureRequest, test: str, parameter: str) -> list[str]:
    """The values of a parameter that a test is going to be run with, so that they can be begun."""
    items = [item for item in request.session.items if isinstance(item, pytest.Function)]
    return [str(i.callspec.params[parameter]) for i in items if i.originalname == test]
