"""The savers' way: real processes that treat a folder as training scripts do, and what it is after.

`tests.trial.test_enter` runs the same scripts under an overlay.
"""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from hotloop.runtime.shield.mirror import Mirror
from hotloop.runtime.shield.territory import Territory
from hotloop.runtime.shield.view import View
from hotloop.trial.shielded import changed, unshielded

SCRIPTS = {
    "overwrites a checkpoint": """
        with open("best.pt", "w") as file:
            file.write("new")
        assert open("best.pt").read() == "new" and os.path.getsize("best.pt") == 3
        """,
    "saves beside, then replaces": """
        with open("best.pt.tmp", "wb") as file:
            file.write(b"new")
        os.replace("best.pt.tmp", "best.pt")
        assert not os.path.exists("best.pt.tmp") and open("best.pt").read() == "new"
        """,
    "deletes the oldest": """
        os.remove("runs/1/model.pt")
        assert not os.path.exists("runs/1/model.pt") and os.listdir("runs/1") == ["optimizer.pt"]
        shutil.rmtree("runs/1")
        assert sorted(glob.glob("runs/*")) == ["runs/2"]
        """,
    "deletes a folder and makes it again": """
        shutil.rmtree("runs")
        assert not os.path.exists("runs/2/model.pt")
        os.makedirs("runs/2")
        assert os.listdir("runs") == ["2"] and os.listdir("runs/2") == []
        """,
    "renames a folder": """
        os.rename("runs/1", "runs/3")
        assert sorted(os.listdir("runs")) == ["2", "3"]
        assert open("runs/3/model.pt").read() == "model 1"
        """,
    "puts a folder in the place of another": """
        os.makedirs("fresh/1")
        open("fresh/1/new.pt", "w").close()
        shutil.rmtree("runs")
        os.rename("fresh", "runs")
        assert os.listdir("runs") == ["1"] and os.listdir("runs/1") == ["new.pt"]
        """,
    "appends to a log": """
        with open("log.txt", "a") as file:
            file.write("two\\n")
        assert open("log.txt").read() == "one\\ntwo\\n"
        """,
    "writes in the middle": """
        with open("log.txt", "r+") as file:
            file.seek(1)
            file.write("N")
        assert open("log.txt").read() == "oNe\\n"
        os.truncate("log.txt", 2)
        assert os.stat("log.txt").st_size == 2
        """,
    "writes a new file in a new folder": """
        os.makedirs("out/deep", exist_ok=True)
        with open("out/deep/metrics.json", "x") as file:
            file.write("{}")
        found = [os.path.join(top, name) for top, _, names in os.walk("out") for name in names]
        assert found == ["out/deep/metrics.json"]
        """,
    "uses pathlib": """
        path = Path("runs") / "2" / "notes.txt"
        path.write_text("hello")
        assert path.exists() and path.read_text() == "hello"
        assert sorted(each.name for each in path.parent.iterdir()) == ["model.pt", "notes.txt"]
        Path("best.pt").unlink()
        assert not Path("best.pt").is_file() and not list(Path().glob("*.pt"))
        """,
    "copies and moves": """
        shutil.copytree("runs/1", "runs/1-copy")
        shutil.copy("best.pt", "runs/1-copy")
        shutil.move("log.txt", "runs/1-copy")
        assert len(os.listdir("runs/1-copy")) == 4 and not os.path.exists("log.txt")
        """,
    "points a link at the latest": """
        os.symlink("runs/2", "latest.tmp")
        os.replace("latest.tmp", "latest")
        assert open("latest/model.pt").read() == "model 2"
        with open("latest/model.pt", "w") as file:
            file.write("new")
        assert open("runs/2/model.pt").read() == "new"
        """,
    "works in a folder of its own": """
        os.mkdir("today")
        os.chdir("today")
        open("config.yaml", "w").close()
        assert os.getcwd().endswith("project/today") and Path("config.yaml").exists()
        assert open("../best.pt").read() == "best"
        """,
    "writes by a temporary file": """
        with tempfile.NamedTemporaryFile("w", dir="runs", delete=False) as file:
            file.write("new")
        os.replace(file.name, "best.pt")
        assert open("best.pt").read() == "new"
        with tempfile.NamedTemporaryFile(dir=".") as file:
            assert os.path.exists(file.name)
        with tempfile.TemporaryDirectory(dir=".") as folder:
            open(os.path.join(folder, "x"), "w").close()
        """,
    "changes modes and times": """
        os.chmod("best.pt", 0o600)
        os.utime("log.txt", (1, 1))
        assert stat.S_IMODE(os.stat("best.pt").st_mode) == 0o600
        assert os.path.getmtime("log.txt") == 1
        """,
    "forks a writer": """
        if os.fork() == 0:
            os.remove("log.txt")
            Path("best.pt").write_text("by the child")
            os._exit(0)
        assert os.wait()[1] == 0
        assert Path("best.pt").read_text() == "by the child" and not Path("log.txt").exists()
        """,
    "works relative to an open folder": """
        folder = os.open("runs/1", os.O_RDONLY)
        os.unlink("model.pt", dir_fd=folder)
        assert os.listdir(folder) == ["optimizer.pt"]
        os.close(os.open("new.pt", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
        os.rename("optimizer.pt", "old.pt", src_dir_fd=folder, dst_dir_fd=folder)
        assert sorted(os.listdir("runs/1")) == ["new.pt", "old.pt"]
        """,
}

TORCH_SCRIPT = """
import torch, numpy
torch.save({"a": torch.ones(3)}, "best.pt")
assert torch.load("best.pt")["a"].sum() == 3
assert torch.load("best.pt", mmap=True)["a"].sum() == 3
torch.save({"a": torch.ones(4)}, "best.pt.tmp")
os.replace("best.pt.tmp", "best.pt")
assert torch.load(f=Path("best.pt"))["a"].sum() == 4
module = torch.jit.script(torch.nn.Linear(2, 2))
module.save("runs/1/model.pt")
torch.jit.save(module, "scripted.pt")
assert torch.jit.load("runs/1/model.pt").weight.equal(torch.jit.load("scripted.pt").weight)
with torch.profiler.profile() as profile:
    torch.ones(3) + 1
profile.export_chrome_trace("log.txt")
assert os.path.getsize("log.txt") > 100
numpy.save("array.npy", numpy.ones(3))
assert numpy.load("array.npy").sum() == 3
numpy.savez("arrays.npz", a=numpy.ones(2))
numpy.ones(2).tofile("runs/2/model.pt")
mapped = numpy.memmap("runs/2/model.pt", dtype=numpy.float64, mode="r+")
mapped[0] = 5
mapped.flush()
assert numpy.fromfile("runs/2/model.pt").tolist() == [5, 1]
try:
    torch.save(1, "missing/model.pt")
except RuntimeError as error:
    assert "missing" in str(error), error
else:
    raise AssertionError("saved into a folder that is not there")
"""

HEAD = "import glob, io, os, shutil, stat, subprocess, sys, tempfile\nfrom pathlib import Path\n"

Snapshot = dict[str, tuple[int, int, bytes]]


def fill(project: Path) -> None:
    """A folder as it looks after yesterday's training."""
    texts = {"best.pt": "best", "log.txt": "one\n", "runs/2/model.pt": "model 2"}
    texts |= {"runs/1/model.pt": "model 1", "runs/1/optimizer.pt": "optimizer 1"}
    for name, text in texts.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (project / "latest").symlink_to("runs/1")


def snapshot(folder: Path) -> Snapshot:
    """All there is to a tree; a folder's time tells of names that came and went."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        status = path.lstat()
        if path.is_symlink():
            contents = os.fsencode(os.readlink(path))
        else:
            contents = path.read_bytes() if stat.S_ISREG(status.st_mode) else b""
        found[str(path)] = (status.st_mode, status.st_mtime_ns, contents)
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    fill(folder)
    return folder


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


def command(script: str, scratch: Path | None, passthrough: list[str]) -> list[str]:
    install = f"shield.install({str(scratch)!r}, {passthrough!r})"
    before = f"from hotloop.runtime import shield\n{install}\n" if scratch else ""
    return [sys.executable, "-W", "ignore", "-c", before + HEAD + dedent(script)]


def run(project: Path, scratch: Path | None, script: str, *passthrough: str) -> str:
    """What the script printed; it has to succeed."""
    done = subprocess.run(
        command(script, scratch, list(passthrough)), cwd=project, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_files_stay_as_they_were(name: str, project: Path, scratch: Path) -> None:
    before = snapshot(project)
    run(project, scratch, SCRIPTS[name])
    assert snapshot(project) == before
    assert changed(str(scratch)) != []


@pytest.mark.parametrize("name", SCRIPTS)
def test_without_a_shield_they_would_not(name: str, project: Path) -> None:
    before = snapshot(project)
    run(project, None, SCRIPTS[name])
    assert snapshot(project) != before


def test_torch_and_numpy(project: Path, scratch: Path) -> None:
    before = snapshot(project)
    run(project, scratch, TORCH_SCRIPT)
    assert snapshot(project) == before
    assert unshielded(str(scratch)) == []


def test_a_library_that_writes_past_python(project: Path, scratch: Path, tmp_path: Path) -> None:
    """A stand-in for safetensors, with its names and with files written by the C library."""
    package = tmp_path / "library" / "safetensors"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        "def serialize_file(data, filename, metadata=None):\n"
        "    fd = libc.open(os.fsencode(filename), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)\n"
        "    libc.write(fd, data, len(data)), libc.close(fd)\n"
        "def safe_open(filename, framework):\n"
        "    return os.read(libc.open(os.fsencode(filename), os.O_RDONLY), 99)\n"
    )
    (package / "torch.py").write_text(
        "from safetensors import serialize_file, safe_open\n"
        "def save_file(tensors, filename, metadata=None):\n"
        "    serialize_file(tensors, filename, metadata=metadata)\n"
        "def load_file(filename, device='cpu'):\n"
        "    return safe_open(filename, framework='pt')\n"
    )
    script = f"""
        sys.path.insert(0, {str(package.parent)!r})
        from safetensors import safe_open
        from safetensors.torch import load_file, save_file
        save_file(b"new", "best.pt")
        assert load_file("best.pt") == b"new" == safe_open(Path("best.pt"), framework="pt")
        save_file(b"newer", filename="runs/new.safetensors")
        assert os.listdir("runs").count("new.safetensors") == 1
        """
    before = snapshot(project)
    run(project, scratch, script)
    assert snapshot(project) == before


def test_a_library_that_is_told_how_to_open(project: Path, scratch: Path, tmp_path: Path) -> None:
    """A stand-in for h5py, which opens files in C, as the mode says that comes after the path."""
    package = tmp_path / "library" / "h5py"
    (package / "_hl").mkdir(parents=True)
    (package / "__init__.py").write_text("from h5py._hl.files import File\n")
    (package / "_hl" / "__init__.py").touch()
    (package / "_hl" / "files.py").write_text(
        "import ctypes, os\n"
        "libc = ctypes.CDLL(None)\n"
        "HOW = {'r': os.O_RDONLY, 'r+': os.O_RDWR, 'a': os.O_RDWR | os.O_CREAT | os.O_APPEND,\n"
        "    'w': os.O_RDWR | os.O_CREAT | os.O_TRUNC, 'x': os.O_RDWR | os.O_CREAT | os.O_EXCL}\n"
        "class File:\n"
        "    def __init__(self, name, mode='r', driver=None):\n"
        "        self.fd = libc.open(os.fsencode(name), HOW[mode], 0o600)\n"
        "        if self.fd < 0: raise OSError(name)\n"
        "    def put(self, data): libc.write(self.fd, data, len(data))\n"
        "    def get(self): return os.pread(self.fd, 99, 0)\n"
    )
    script = f"""
        sys.path.insert(0, {str(package.parent)!r})
        import h5py
        assert h5py.File("best.pt").get() == b"best"
        h5py.File("best.pt", mode="a").put(b" of all")
        assert h5py.File(Path("best.pt"), "r").get() == b"best of all"
        h5py.File("best.pt", "w").put(b"new")
        h5py.File(name="runs/new.h5", mode="x").put(b"newer")
        try:
            h5py.File("best.pt", "x")
        except OSError as error:
            assert str(error) == "best.pt" or os.path.exists(str(error))
        for mode in ("r", "r+"):
            try:
                h5py.File("missing.h5", mode)
            except OSError:
                continue
            raise AssertionError(mode)
        assert open("best.pt").read() == "new" and os.path.exists("runs/new.h5")
        """
    before = snapshot(project)
    run(project, scratch, script)
    assert snapshot(project) == before
    assert [path for path in changed(str(scratch)) if "missing" in path] == []


def test_a_database(project: Path, scratch: Path) -> None:
    run(project, None, "import sqlite3\nsqlite3.connect('runs.db').execute('create table t (n)')")
    before = snapshot(project)
    script = """
        import sqlite3
        with sqlite3.connect("runs.db") as database:
            database.execute("insert into t values (1)")
        assert list(sqlite3.connect("runs.db").execute("select n from t")) == [(1,)]
        sqlite3.connect(":memory:").execute("create table t (n)")
        assert not os.path.exists(":memory:")
        """
    run(project, scratch, script)
    assert snapshot(project) == before


def test_imports_leave_no_bytecode(
    project: Path, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    (project / "helper.py").write_text("value = 1")
    before = snapshot(project)
    script = "sys.path.insert(0, os.getcwd())\nimport helper\nassert helper.value == 1"
    run(project, scratch, script)
    assert snapshot(project) == before


def test_killed_in_the_middle(project: Path, scratch: Path) -> None:
    script = """
        print("training", flush=True)
        while True:
            with open("best.pt", "wb") as file:
                file.write(bytes(1 << 20))
            shutil.copy("best.pt", "log.txt")
            shutil.rmtree("runs")
            shutil.copytree("latest/..", "runs") if os.path.exists("latest") else os.mkdir("runs")
        """
    before = snapshot(project)
    writer = subprocess.Popen(
        command(script, scratch, []), cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert writer.stdout is not None
    writer.stdout.readline()
    with pytest.raises(subprocess.TimeoutExpired):
        writer.wait(0.3)
    writer.send_signal(signal.SIGKILL)
    assert writer.wait() == -signal.SIGKILL
    assert snapshot(project) == before
    assert str(project / "best.pt") in changed(str(scratch))


def test_a_worker_sees_what_happens_after_the_fork(project: Path, scratch: Path) -> None:
    script = """
        import signal
        assert os.path.exists("latest/model.pt")
        ready, go = os.pipe(), os.pipe()
        if os.fork() == 0:
            signal.alarm(30)  # should the parent fail
            Path("log.txt").write_text("by the worker")
            os.write(ready[1], b"x")
            os.read(go[0], 1)
            os._exit(os.path.exists("runs/1/model.pt") or Path("best.pt").read_text() != "new")
        os.read(ready[0], 1)
        assert Path("log.txt").read_text() == "by the worker"
        shutil.rmtree("runs/1")
        Path("best.pt").write_text("new")
        os.write(go[1], b"x")
        assert os.wait()[1] == 0
        """
    run(project, scratch, script)


SEQUENCE = """
import json, random
dice = random.Random(int(sys.argv[1]))
names = ["best.pt", "log.txt", "runs", "1", "2", "model.pt", "latest", "new"]

def path():
    return "/".join(dice.choice(names) for _ in range(dice.choice([1, 1, 2, 2, 3])))

def write(mode, path, _):
    with open(path, mode) as file:
        file.write(mode)

def look(path, _):
    return os.path.isdir(path), os.path.isfile(path), os.path.islink(path), os.access(path, os.R_OK)

def link(path, _):
    text = dice.choice(names)
    if text != os.path.basename(path):
        os.symlink(text, path)

actions = [
    *(lambda p, q, mode=mode: write(mode, p, q) for mode in ("w", "a", "x", "r+")),
    *(lambda p, q, act=act: act(p) for act in (os.unlink, os.mkdir, os.rmdir, shutil.rmtree)),
    lambda p, q: os.makedirs(p), lambda p, q: Path(p).touch(), lambda p, q: os.truncate(p, 1),
    lambda p, q: os.rename(p, q), lambda p, q: os.replace(p, q), lambda p, q: shutil.copy(p, q),
    lambda p, q: sorted(os.listdir(p)), lambda p, q: os.readlink(p), look, link,
]

def tree():
    return {
        str(each): os.readlink(each) if each.is_symlink() else each.is_file() and each.read_text()
        for each in sorted(Path().rglob("*"))
    }

for _ in range(80):
    action, first, second = dice.choice(actions), path(), path()
    try:
        outcome = str(action(first, second))
    except FileNotFoundError:
        outcome = NotADirectoryError.__name__  # which of the two, the shield tells less exactly
    except OSError as error:
        outcome = type(error).__name__
    print(json.dumps([first, second, outcome, tree()]))
"""


@pytest.mark.parametrize("seed", range(4))
def test_a_script_cannot_tell(seed: int, project: Path, scratch: Path, tmp_path: Path) -> None:
    """The same random calls, in a shielded folder and in one of their own, end the same."""
    own = tmp_path / "own"
    fill(own)
    before = snapshot(project)
    printed = []
    for folder, where in ((project, scratch), (own, None)):
        arguments = [*command(SEQUENCE, where, []), str(seed)]
        done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        printed.append([json.loads(line) for line in done.stdout.splitlines()])
    assert len(printed[0]) == 80
    for in_shielded, in_own in zip(*printed, strict=True):
        assert in_shielded == in_own
    assert snapshot(project) == before


def test_what_cannot_be_redirected_is_refused(project: Path, scratch: Path) -> None:
    script = """
        import posix
        from hotloop.runtime import shield
        for change in (
            lambda: io.FileIO("best.pt", "w"),
            lambda: posix.unlink("best.pt"),
            lambda: posix.rename("log.txt", "best.pt"),
            lambda: posix.unlink("model.pt", dir_fd=posix.open("runs/1", os.O_RDONLY)),
            lambda: os.chmod(posix.open("best.pt", os.O_RDONLY), 0o600),
        ):
            try:
                change()
            except PermissionError as error:
                assert "hotloop keeps" in str(error)
            else:
                raise AssertionError("not refused")
        print(*shield.unshielded(), sep="\\n")
        """
    before = snapshot(project)
    notes = run(project, scratch, script).splitlines()
    assert snapshot(project) == before
    kept = [project / name for name in ("best.pt", "log.txt", "runs/1/model.pt")]
    assert notes == [f"was kept from changing {path}" for path in kept]


def test_what_got_past_is_noted(project: Path, scratch: Path) -> None:
    script = """
        io.FileIO("new.bin", "w").close()
        subprocess.run(["true", "and", "so on"])
        subprocess.run(["true", "again"])
        os.system("exit 0")
        """
    run(project, scratch, script)
    notes = [f"wrote {project / 'new.bin'}", "ran true and so on", "ran exit 0"]
    assert unshielded(str(scratch)) == notes


@pytest.fixture
def shared() -> Iterator[Path]:
    """In the system's temporary folder, where nobody works."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_beside_the_working_folder_lies_the_users(project: Path, scratch: Path) -> None:
    """Though all of it lies in the temporary folder."""
    results = project.parent / "results"
    results.mkdir()
    (results / "scores.json").write_text("old")
    script = """
        Path("../results/scores.json").write_text("new")
        Path("../results/more").touch()
        assert Path("../results/scores.json").read_text() == "new"
        """
    before = snapshot(results)
    run(project, scratch, script)
    assert snapshot(results) == before
    covered = f"""
        from hotloop.runtime import shield
        shield.install({str(scratch)!r}, [], [{str(project)!r}], is_covered=True)
        """
    run(project, None, covered + script)
    assert snapshot(results) == before
    run(Path("/"), None, covered + script.replace("..", str(project.parent)))
    assert snapshot(results) == before


def test_what_is_not_the_users_is_written(project: Path, scratch: Path, shared: Path) -> None:
    (project / ".hotloop").mkdir()
    elsewhere = shared / "elsewhere.txt"
    script = f"""
        Path(".hotloop/result.json").write_text("here")
        Path("runs/new.txt").write_text("mirrored")
        os.replace("runs/new.txt", {str(elsewhere)!r})
        shutil.copy({str(elsewhere)!r}, "best.pt")
        os.rename({str(elsewhere)!r}, {str(elsewhere) + "2"!r})
        shutil.move({str(elsewhere) + "2"!r}, "log.txt")
        assert Path("best.pt").read_text() == Path("log.txt").read_text() == "mirrored"
        shutil.copytree("runs", {str(shared / "copied")!r})
        os.rename("runs", {str(shared / "renamed")!r})
        """
    before = snapshot(project)
    run(project, scratch, script, ".hotloop")
    after = snapshot(project)
    assert after.pop(str(project / ".hotloop/result.json"))[2] == b"here"
    for unchanged in (before, after):
        unchanged.pop(str(project / ".hotloop"))
    assert after == before
    assert not list(shared.glob("elsewhere*"))
    names = ["1", "1/model.pt", "1/optimizer.pt", "2", "2/model.pt"]
    for copy in (shared / "copied", shared / "renamed"):
        assert sorted(str(path.relative_to(copy)) for path in copy.rglob("*")) == names


def test_changed_tells_what_would_have_happened(project: Path, scratch: Path) -> None:
    script = """
        Path("best.pt").write_text("new")
        os.remove("log.txt")
        os.mkdir("out")
        Path("out/x").touch()
        Path("came").touch()
        os.remove("came")
        """
    run(project, scratch, script)
    paths = [str(project / name) for name in ("best.pt", "log.txt", "out", "out/x")]
    assert changed(str(scratch)) == paths


def test_the_same_errors_with_the_same_names(project: Path, scratch: Path) -> None:
    script = """
        (Path("runs/1") / "model.pt").unlink()
        for call in (
            lambda: open("runs/1/model.pt"),
            lambda: os.stat("runs/1/model.pt"),
            lambda: open("missing/new.pt", "w"),
            lambda: open("runs", "w"),
            lambda: os.listdir("missing"),
            lambda: os.rmdir("runs"),
            lambda: os.mkdir("runs"),
            lambda: os.replace(Path("missing"), "best.pt"),
            lambda: os.symlink("anything", "best.pt"),
            lambda: os.link("missing", "new"),
            lambda: os.unlink(b"missing"),
        ):
            try:
                call()
            except OSError as error:
                print(error)
        print(open("best.pt", "w").name)
        """
    printed = run(project, scratch, script)
    assert printed == run(project, None, script)
    assert printed.count("[Errno") == 11


def test_stand_ins_pass_for_built_in_functions(project: Path, scratch: Path) -> None:
    script = """
        import pickle, posix
        assert os.remove is not posix.remove
        for function in (open, os.stat, os.remove):
            assert pickle.loads(pickle.dumps(function)) is function
        class Reader:
            open = open
        assert Reader().open("best.pt").read() == "best"
        assert shutil.rmtree.avoids_symlink_attacks and os.scandir in os.supports_fd
        """
    run(project, scratch, script)


def test_reading_where_nothing_was_written_costs_a_look(project: Path, scratch: Path) -> None:
    mirror = Mirror(str(scratch))
    view = View(mirror, Territory(str(scratch), [], [str(project)]))
    path = str(project / "runs/1/model.pt")
    assert view.is_untouched and view.reading(path) is path
    mirror.make_folder(str(project))
    assert not view.is_untouched and view.reading(path) is path
    assert view.reading(str(project / "latest/model.pt")).endswith("latest/model.pt")
    mirror.delete(path)
    assert view.reading(path) == mirror.nowhere


def test_the_innermost_folder_decides(project: Path, scratch: Path) -> None:
    territory = Territory(str(scratch), [str(project / "data")], [str(project)])
    assert territory.shields(str(project / "best.pt"))
    assert territory.shields("/anywhere/else")
    for free in (
        scratch / "x",
        project / "data/x",
        project / "__pycache__/m.pyc",
        Path("/dev/null"),
    ):
        assert not territory.shields(str(free))
    assert not territory.shields(str(project.parent / "x"))  # the temporary folder
    works = Territory(str(scratch), [str(project)], [], [str(project)])
    assert works.shields(str(project.parent / "x")) and not works.shields(str(project / "x"))
    assert not works.shields(os.path.join(tempfile.gettempdir(), "x"))
