"""The overlay: the same scripts as in `tests.runtime.test_shield`, behind mounts of their own."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from hotloop.trial import enter, kernel, shielded
from tests.runtime.test_shield import HEAD, SCRIPTS, TORCH_SCRIPT, fill, snapshot

if sys.platform != "linux":
    pytest.skip("overlay mounts are Linux's", allow_module_level=True)

PR_CAPBSET_DROP = 24  # <linux/prctl.h>
# To read and write all files, and to mount: CAP_DAC_OVERRIDE and others in <linux/capability.h>.
PRIVILEGES = (1, 2, 21)

# A launcher of its own; the file that it passes on has to name it.
AS_PARENT = f"""{HEAD}
import json
order = Path(sys.argv[-1])
order.write_text(json.dumps(json.loads(order.read_text()) | {{"parent": os.getpid()}}))
"""


@dataclass
class Trial:
    """One entry, as the launcher would order it."""

    folder: Path

    def __post_init__(self) -> None:
        self.project = self.folder / "project, with: odd\\ names" / "project"
        self.scratch = self.folder / "scratch"
        self.scratch.mkdir()
        fill(self.project)

    def order(self, script: str, **changes: Any) -> list[str]:
        order = {
            "argv": [sys.executable, "-W", "ignore", "-c", HEAD + dedent(script)],
            "cwd": str(self.project),
            "env": dict(os.environ),
            "protect": [str(self.project.parent), str(self.project)],
            "passthrough": [str(self.project / ".hotloop")],
            "scratch": str(self.scratch),
            "report": str(self.folder / "report.json"),
            "overlay": True,
            "parent": os.getpid(),
        }
        path = self.folder / "enter.json"
        path.write_text(json.dumps(order | changes))
        return [sys.executable, "-I", "-S", enter.__file__, str(path)]

    def run(
        self, script: str, preexec: Callable[[], None] | None = None, **changes: Any
    ) -> subprocess.CompletedProcess[str]:
        command = self.order(script, **changes)
        return subprocess.run(
            command, capture_output=True, text=True, preexec_fn=preexec, cwd=self.project
        )

    def succeed(self, script: str, **changes: Any) -> str:
        done = self.run(script, **changes)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self.folder / "report.json").read_text())
        return report

    @property
    def changed(self) -> list[str]:
        """Relative to the project."""
        paths = shielded.changed(str(self.scratch))
        return [os.path.relpath(path, self.project) for path in paths]


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    return Trial(tmp_path)


@pytest.fixture(scope="session")
def overlay(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Needed by tests of what only an overlay does."""
    trial = Trial(tmp_path_factory.mktemp("possible"))
    trial.succeed("pass")
    if trial.report["way"] != "overlay":
        pytest.skip(f"no overlay mounts here: {trial.report['why']}")


def without_privilege() -> None:
    """Let root be what an ordinary user is."""
    for privilege in PRIVILEGES if os.geteuid() == 0 else ():
        kernel.libc().prctl(PR_CAPBSET_DROP, privilege, 0, 0, 0)


@pytest.mark.usefixtures("overlay")
class TestOverlay:
    @pytest.mark.parametrize("name", SCRIPTS)
    def test_the_files_stay_as_they_were(self, name: str, trial: Trial) -> None:
        before = snapshot(trial.project)
        trial.succeed(SCRIPTS[name])
        assert trial.report == {
            "way": "overlay",
            "protected": [str(trial.project.parent)],
            "why": None,
        }
        assert snapshot(trial.project) == before
        assert trial.changed != []

    def test_torch_and_numpy(self, trial: Trial) -> None:
        pytest.importorskip("torch")
        before = snapshot(trial.project)
        trial.succeed(TORCH_SCRIPT)
        assert snapshot(trial.project) == before

    def test_other_programs_are_shielded_too(self, trial: Trial) -> None:
        before = snapshot(trial.project)
        trial.succeed("subprocess.run('rm -r runs; echo new > best.pt', shell=True, check=True)")
        assert snapshot(trial.project) == before
        assert trial.changed == ["best.pt", "runs"]

    def test_killed_in_the_middle(self, trial: Trial) -> None:
        script = """
            print("training", flush=True)
            while True:
                Path("best.pt").write_bytes(bytes(1 << 20))
                shutil.rmtree("runs")
                os.mkdir("runs")
            """
        before = snapshot(trial.project)
        with subprocess.Popen(trial.order(script), stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(0.3)
            writer.send_signal(signal.SIGKILL)
        assert writer.returncode == -signal.SIGKILL
        assert snapshot(trial.project) == before
        assert "best.pt" in trial.changed

    def test_passthrough_is_written(self, trial: Trial) -> None:
        (trial.project / ".hotloop").mkdir()
        trial.succeed("Path('.hotloop/result.json').write_text('here')")
        assert (trial.project / ".hotloop/result.json").read_text() == "here"
        assert trial.changed == []

    def test_a_missing_folder_is_not_created(self, trial: Trial) -> None:
        missing = trial.folder / "data" / "out"
        missing.parent.mkdir()
        trial.succeed(f"Path({str(missing)!r}).mkdir()", protect=[str(missing)])
        assert not missing.exists()
        assert trial.changed == [os.path.relpath(missing, trial.project)]

    def test_changed_tells_what_would_have_happened(self, trial: Trial) -> None:
        script = """
            Path("best.pt").write_text("new")
            os.remove("log.txt")
            shutil.rmtree("runs/1")
            os.mkdir("runs/1")
            os.mkdir("out")
            Path("out/x").touch()
            Path("came").touch()
            os.remove("came")
            """
        trial.succeed(script)
        assert trial.changed == ["best.pt", "log.txt", "out", "out/x", "runs/1"]

    def test_scratch_space_can_be_removed(self, trial: Trial) -> None:
        """By an ordinary user too, although the overlay's own folder in it cannot be listed."""
        trial.succeed("Path('best.pt').unlink()")
        program = "import sys; from hotloop.trial.removing import remove; remove(sys.argv[1])"
        command = [sys.executable, "-c", program, str(trial.scratch)]
        subprocess.run(command, check=True, preexec_fn=without_privilege)
        assert not trial.scratch.exists()

    def test_the_folder_looks_the_same(self, trial: Trial) -> None:
        trial.project.chmod(0o750)
        os.utime(trial.project, (1, 1))
        script = "print(os.getcwd(), *os.stat('.')[:1], os.stat('.').st_mtime, sep='\\n')"
        printed = trial.succeed(script, protect=[str(trial.project)])
        status = trial.project.stat()
        assert printed.splitlines() == [str(trial.project), str(status.st_mode), "1.0"]

    def test_without_privilege(self, trial: Trial) -> None:
        before = snapshot(trial.project)
        script = (
            SCRIPTS["deletes a folder and makes it again"]
            + "print(open('/proc/self/uid_map').read())"
        )
        done = trial.run(script, preexec=without_privilege)
        if trial.report["way"] != "overlay":
            pytest.skip(f"no overlay mounts for ordinary users: {trial.report['why']}")
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == [str(os.geteuid()), str(os.geteuid()), "1"]
        assert snapshot(trial.project) == before
        assert "runs" in trial.changed

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
    def test_without_privilege_in_a_folder_of_others(self, trial: Trial) -> None:
        os.chown(trial.project, 0, 12345)
        trial.project.chmod(0o775)
        trial.run("pass", preexec=without_privilege)
        assert trial.report["way"] == "savers"
        assert trial.report["why"] == f"{trial.project} belongs to another user or group"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount for this test")
    def test_what_is_mounted_below_is_seen_and_shielded(self, trial: Trial) -> None:
        mounted = trial.project / "runs"
        script = """
            assert Path("runs/data.bin").read_text() == "mounted"
            Path("runs/data.bin").write_text("new")
            os.remove("best.pt")
            """
        before = snapshot(trial.project)
        launcher = AS_PARENT + dedent(f"""
            subprocess.run(["mount", "-t", "tmpfs", "none", {str(mounted)!r}], check=True)
            data = Path({str(mounted)!r}, "data.bin")
            data.write_text("mounted")
            subprocess.run(sys.argv[1:], check=True)
            print(data.read_text())
            """)
        command = ["unshare", "-m", sys.executable, "-c", launcher, *trial.order(script)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "mounted\n"), done.stderr
        assert trial.report["protected"] == [str(trial.project.parent), str(mounted)]
        assert trial.changed == ["best.pt", "runs/data.bin"]
        assert snapshot(trial.project) == before


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"overlay": False}, "not asked for"),
        ({"protect": ["/"]}, "/ holds the scratch space"),
    ],
)
def test_the_savers_way_and_why(trial: Trial, changes: dict[str, Any], why: str) -> None:
    assert trial.succeed("print(os.environ['HOTLOOP_SHIELD'])", **changes) == "savers\n"
    assert trial.report["way"] == "savers"
    assert trial.report["why"].startswith(why)


def test_a_failed_rehearsal_means_the_savers_way(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever goes wrong, it goes wrong in a child, and this process stays where it was."""

    def refuse(*arguments: object) -> None:
        raise OSError("no overlay today")

    monkeypatch.setattr(kernel, "mount", refuse)
    monkeypatch.setattr(kernel, "unshare", lambda flags: None)
    namespace = os.readlink("/proc/self/ns/mnt")
    order = json.loads(Path(trial.order("pass")[-1]).read_text())
    why, protected = enter.cover(order)
    assert why == "no overlay today"
    assert protected == [str(trial.project.parent), str(trial.project)]
    assert os.readlink("/proc/self/ns/mnt") == namespace


def test_an_overlay_that_lets_writes_through_is_refused(
    trial: Trial, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enter, "lay_all", lambda *arguments: [])
    order = json.loads(Path(trial.order("pass")[-1]).read_text())
    assert enter.cover(order)[0] == "what was written in the overlay reached the folder below it"


def test_a_command_that_cannot_be_run(trial: Trial) -> None:
    done = trial.run("", argv=["/no/such/python"], overlay=False)
    assert done.returncode == 127
    assert "No such file" in trial.report["exec_error"]
    assert trial.report["way"] == "savers"


def test_signals_are_as_a_shell_would_leave_them(trial: Trial) -> None:
    printed = trial.run("", argv=["/bin/grep", "SigIgn", "/proc/self/status"], overlay=False).stdout
    assert int(printed.split()[1], 16) & (1 << (signal.SIGPIPE - 1)) == 0


@pytest.mark.parametrize("preexec", [None, without_privilege])
def test_it_dies_with_the_launcher(trial: Trial, preexec: Callable[[], None] | None) -> None:
    launcher = AS_PARENT + "subprocess.Popen(sys.argv[1:]).wait()"
    script = """
        print("training", flush=True)
        import time
        time.sleep(60)
        """
    command = [sys.executable, "-c", launcher, *trial.order(script)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=preexec
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "training\n"
        process.kill()
        # Its end closes the pipe; otherwise this would wait for a minute.
        began = time.monotonic()
        process.stdout.read()
    assert time.monotonic() - began < 30


def test_a_launcher_that_is_gone_already(trial: Trial) -> None:
    done = trial.run("print('ran')", parent=1)
    assert (done.returncode, done.stdout) == (1, "")
    assert "launcher is gone" in done.stderr


def test_the_terminal_is_the_commands_own(trial: Trial) -> None:
    ours, childs = pty.openpty()
    command = trial.order("os.open('/dev/tty', os.O_RDWR)", overlay=False)
    done = subprocess.run(command, stdin=childs, start_new_session=True, stderr=subprocess.PIPE)
    for end in (ours, childs):
        os.close(end)
    assert done.returncode == 0, done.stderr


class TestPlan:
    @pytest.fixture(autouse=True)
    def folders(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("a/b/c", "d"):
            (tmp_path / name).mkdir(parents=True)
        self.root = str(tmp_path)
        self.mounted: list[tuple[str, str]] = []
        monkeypatch.setattr(kernel, "mounts", lambda: self.mounted)

    def plan(self, protect: list[str], passthrough: list[str]) -> list[tuple[str, bool]]:
        def below(names: list[str]) -> list[str]:
            return [f"{self.root}/{name}" for name in names]

        layers = enter.plan(below(protect), below(passthrough), "/scratch")
        return [(os.path.relpath(layer.path, self.root), layer.overlaid) for layer in layers]

    def test_nested_folders_are_covered_once(self) -> None:
        assert self.plan(["a/b", "a", "d"], ["d/x"]) == [("a", True), ("d", True)]

    def test_the_innermost_folder_decides(self) -> None:
        assert self.plan(["a", "a/b/c"], ["a/b", "d"]) == [
            ("a", True),
            ("a/b", False),
            ("a/b/c", True),
        ]

    def test_mounts_below(self) -> None:
        self.mounted = [
            (f"{self.root}/{name}", kind)
            for name, kind in (("a/b", "ext4"), ("a/b/c", "proc"), ("d", "ext4"), ("ab", "ext4"))
        ]
        assert self.plan(["a"], []) == [("a", True), ("a/b", True), ("a/b/c", False)]
        assert self.plan(["a"], ["a/b"]) == [("a", True), ("a/b", False)]

    def test_the_kernels_folders_are_left_alone(self) -> None:
        assert enter.plan(["/dev", "/proc", "/sys"], [], "/scratch") == []


def test_mounts_with_spaces_in_their_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    line = "36 35 98:0 / /a\\040b\\134ü rw,noatime shared:1 - ext4 /dev/root rw\n"
    (tmp_path / "mountinfo").write_text(line, encoding="utf-8")
    opened = open
    monkeypatch.setattr("builtins.open", lambda path, mode: opened(tmp_path / "mountinfo", mode))
    assert list(kernel.mounts()) == [("/a b\\ü", "ext4")]
