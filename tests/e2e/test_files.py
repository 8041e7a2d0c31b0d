"""What a script saves, renames or deletes in a trial stays the user's as it was."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import Executor, Future
from pathlib import Path

import pytest

from .conftest import MODEL, Desk, Ended, cleared

pytestmark = [pytest.mark.e2e, pytest.mark.parametrize("overlay", ["1", "0"])]

SAVES = (
    "import os, pathlib, shutil, sys, time\n"
    + MODEL
    + """\
elsewhere = pathlib.Path(sys.argv[1])
beyond = elsewhere.with_name("beyond")
home = pathlib.Path.home()
for number in range(1_000_000):
    step()
    torch.save(model.state_dict(), "last.pt")
    torch.save(model.state_dict(), elsewhere / "best.pt.tmp")
    os.replace(elsewhere / "best.pt.tmp", elsewhere / "best.pt")
    torch.save(model.state_dict(), beyond / "best.pt")
    pathlib.Path("runs", f"{number}").mkdir(parents=True, exist_ok=True)
    torch.save(optimizer.state_dict(), f"runs/{number}/optimizer.pt")
    with open("log.csv", "a") as log:
        print(number, file=log)
    if number == 3:
        os.remove("old.pt")
        shutil.rmtree("checkpoint-1")
        os.rename("notes.txt", "notes.old")
        (home / "model.bin").write_bytes(b"trained")
        os.remove(beyond / "old.pt")
        (beyond / "log.txt").write_text("new")
        assert sorted(os.listdir(beyond)) == ["best.pt", "log.txt"]
        assert not os.path.exists("old.pt") and not os.path.exists("checkpoint-1")
        assert torch.load("last.pt")["weight"].shape == (1, 4)
        assert pathlib.Path("notes.old").read_text() == "notes\\n"
        print("saved everything", flush=True)
        if sys.argv[2] == "hang":
            time.sleep(1000)
"""
)


def train(base: Path, overlay: str, ending: str) -> tuple[Desk, Ended]:
    with cleared(base) as desk:
        desk.write(SAVES)
        elsewhere, beyond = base / "checkpoints", base / "beyond"
        for folder in (elsewhere, beyond):
            folder.mkdir()
            (folder / "best.pt").write_bytes(b"the best")
        (beyond / "old.pt").write_bytes(b"old")
        for name in ("last.pt", "old.pt", "checkpoint-1/model.pt", "checkpoint-1/deep/state.pt"):
            desk.write(f"precious {name}".encode(), name)
        desk.write("notes\n", "notes.txt")
        (desk.home / "model.bin").write_bytes(b"at home")
        limit = ["--steps", "3"] if ending == "enough" else ["--timeout", "20s"]
        words = (*limit, "train.py", str(elsewhere), ending)
        return desk, desk.profile(*words, env={"HOTLOOP_OVERLAY": overlay})


Trials = dict[tuple[str, str], Future[tuple[Desk, Ended]]]


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory, waiting: Executor) -> Trials:
    return {
        (overlay, ending): waiting.submit(train, tmp_path_factory.mktemp(ending), overlay, ending)
        for overlay in ("1", "0")
        for ending in ("enough", "hang")
    }


@pytest.mark.parametrize(("ending", "code"), [("enough", 0), ("hang", 90)])
def test_checkpoints_stay_as_they_were(
    trials: Trials, overlay: str, ending: str, code: int
) -> None:
    """When enough was seen, and when the script had to be killed."""
    desk, ended = trials[overlay, ending].result()
    assert ended.code == code, ended
    assert "saved everything" in desk.printed()
    elsewhere = desk.base / "checkpoints"
    assert os.listdir(elsewhere) == ["best.pt"]
    assert (elsewhere / "best.pt").read_bytes() == b"the best"
    beyond = desk.base / "beyond"  # which nothing has named
    found = {path.name: path.read_bytes() for path in beyond.iterdir()}
    assert found == {"best.pt": b"the best", "old.pt": b"old"}
    (trial,) = desk.study()["trials"]
    assert trial["shielding"]["way"] == ("overlay" if overlay == "1" else "savers")
    kept = set(trial["shielding"]["kept_apart"])
    for name in ("last.pt", "old.pt", "checkpoint-1", "notes.txt", "notes.old", "log.csv"):
        assert str(desk.project / name) in kept
    assert {str(elsewhere / "best.pt"), str(desk.home / "model.bin")} <= kept


def test_what_is_deleted_can_be_written_again(desk: Desk, overlay: str) -> None:
    """The rotation of a trainer that keeps the last two; without torch, whose own way is above."""
    desk.write(
        """\
import glob, os, shutil
for number in range(10):
    os.makedirs(f"checkpoint-{number}")
    open(f"checkpoint-{number}/model.bin", "w").write(str(number))
    for old in sorted(glob.glob("checkpoint-*"))[:-2]:
        shutil.rmtree(old)
print(sorted(glob.glob("checkpoint-*/*")))
"""
    )
    desk.write("mine", "checkpoint-00/model.bin")
    ended = desk.profile("train.py", env={"HOTLOOP_OVERLAY": overlay})
    ended.expect(89, "without importing torch", remedy="train")
    assert desk.printed() == "['checkpoint-8/model.bin', 'checkpoint-9/model.bin']\n"


@pytest.mark.parametrize(
    "statement",
    [
        "os.remove('absent.pt')",
        "open('absent/model.pt', 'w')",
        "shutil.rmtree('absent')",
        "os.replace('absent.pt', 'model.pt')",
        "pathlib.Path('train.py').mkdir()",
    ],
)
def test_errors_are_the_scripts_own(desk: Desk, overlay: str, statement: str) -> None:
    """Refused as the file system would have refused, and shown as Python would have shown it."""
    desk.write(f"import os, pathlib, shutil\n{statement}\n")
    plain = desk.python("train.py")
    ended = desk.profile("train.py", env={"HOTLOOP_OVERLAY": overlay})
    ended.expect(87, "before its first training step: File", remedy="Run it as it is")
    assert ended.err.partition("\n")[2] == f"{plain.err}\n{ended.sentence}\n"


def test_imports_leave_no_bytecode(desk: Desk, overlay: str) -> None:
    desk.write("import sibling")
    desk.write("print('imported')", "sibling.py")
    desk.profile("train.py", env={"HOTLOOP_OVERLAY": overlay})
    assert desk.printed() == "imported\n"


def test_the_disk_is_the_users(desk: Desk, overlay: str) -> None:
    """Scripts look how much room there is before they save."""
    desk.write("import shutil; print(shutil.disk_usage('.').total)")
    desk.profile("train.py", env={"HOTLOOP_OVERLAY": overlay})
    total = shutil.disk_usage(desk.project).total
    assert 0.5 * total < int(desk.printed()) < 2 * total


def test_what_a_script_would_have_tidied_up_is_gone(desk: Desk, overlay: str) -> None:
    """It is ended before it comes to that, and its workers with it."""
    desk.write(
        "import tempfile\n"
        + MODEL
        + """
made = tempfile.TemporaryDirectory()
kept = tempfile.NamedTemporaryFile()
loader = torch.utils.data.DataLoader(list(range(100_000)), batch_size=2, num_workers=2)
for batch in loader:
    step()
"""
    )
    ended = desk.profile("train.py", env={"HOTLOOP_OVERLAY": overlay})
    assert ended.code == 0, ended
