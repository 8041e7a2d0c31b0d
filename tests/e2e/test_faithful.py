"""In a trial a script finds the world as it would find it without us."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from .conftest import MODEL, TRAIN, Desk

pytestmark = pytest.mark.e2e

WORLD = """\
import os, re, sys
facts = {
    "argv": sys.argv,
    "name": __name__,
    "file": __file__,
    "spec": re.sub(" at 0x[0-9a-f]+", "", repr(__spec__)),
    "cwd": os.getcwd(),
    "path": sys.path[:],
    "PYTHONPATH": os.environ.get("PYTHONPATH"),
    "executable": sys.executable,
    "sitecustomize": getattr(sys.modules.get("sitecustomize"), "__file__", None),
    "users own": vars(__builtins__).get("users_own"),
    "main": sys.modules["__main__"].__dict__ is globals(),
    "utf8": sys.flags.utf8_mode,
}
import sibling
facts["sibling"] = sibling.__file__
"""
WORLD_WITH_TORCH = (
    WORLD
    + """\
import importlib.util, json
terminal = [os.isatty(number) for number in range(3)]
ours = sorted(name for name in os.environ if name.startswith("HOTLOOP_"))
facts["torch"] = [importlib.util.find_spec("torch").name for _ in range(2)]
os.environ["OMP_NUM_THREADS"] = "1"
import torch
facts["threads"] = torch.get_num_threads()
print(json.dumps([facts, {"terminal": terminal, "ours": ours}]), flush=True)
"""
    + MODEL
    + "for _ in range(99):\n    step()\n"
)


@pytest.fixture(scope="module")
def world(shared_desk: Desk) -> tuple[Any, Any]:
    """What a script saw in a trial, and without one."""
    desk = shared_desk
    desk.write(WORLD_WITH_TORCH, "sub/train.py")
    desk.write("", "sub/sibling.py")
    desk.write("import builtins\nbuiltins.users_own = 'theirs'\n", "site/sitecustomize.py")
    environment = {"PYTHONPATH": str(desk.project / "site"), "LANG": "C"}
    words = ("sub/train.py", "-x", "--steps", "", "-m")
    plain = desk.python(*words, env=environment)
    assert plain.code == 0, plain
    ended = desk.profile("--python", desk.executable, "--steps", "3", *words, env=environment)
    assert ended.code == 0, ended
    return json.loads(desk.printed()), json.loads(plain.out)


def test_sees_the_same_world(world: tuple[Any, Any]) -> None:
    assert world[0][0] == world[1][0]


def test_is_on_a_terminal(world: tuple[Any, Any]) -> None:
    """But for what is piped in."""
    assert world[0][1]["terminal"] == [False, True, True]


def test_only_the_mark_is_ours(world: tuple[Any, Any]) -> None:
    assert set(world[0][1]["ours"]) - set(world[1][1]["ours"]) <= {"HOTLOOP_TRIAL"}


def test_threads_are_the_scripts_choice(world: tuple[Any, Any]) -> None:
    assert world[0][0]["threads"] == 1


def test_the_users_own_sitecustomize_runs(world: tuple[Any, Any], shared_desk: Desk) -> None:
    seen = world[0][0]
    assert seen["users own"] == "theirs"
    assert seen["sitecustomize"] == str(shared_desk.project / "site" / "sitecustomize.py")


def test_a_module_sees_the_same_world(desk: Desk) -> None:
    desk.write("", "package/__init__.py")
    desk.write(
        WORLD.replace("import sib", "from . import sib") + "print(facts)", "package/train.py"
    )
    desk.write("", "package/sibling.py")
    words = ("-m", "package.train", "--epochs", "3")
    ended = desk.profile("--python", desk.executable, *words)
    ended.expect(89, "without importing torch", remedy="train")
    assert desk.printed() == desk.python(*words).out


def test_a_module_of_its_own_may_be_named_as_one_of_pythons(desk: Desk) -> None:
    """We have loaded Python's by then; the script shall find what lies beside it."""
    for name in ("statistics", "resource", "dataclasses"):
        desk.write("mine = True", f"{name}.py")
    desk.write("import statistics, resource, dataclasses\nprint(statistics.mine, dataclasses.mine)")
    ended = desk.profile("train.py")
    ended.expect(89, "without importing torch", remedy="train")
    assert desk.printed() == desk.python("train.py").out == "True True\n"


def test_nor_do_we_import_what_is_the_scripts(desk: Desk) -> None:
    """Python's own profiler is made of two modules, of which one is called so."""
    desk.write("print('mine', flush=True)", "profile.py")
    desk.write(TRAIN)
    ended = desk.profile("--no-look", "--steps", "3", "--depth", "python", "train.py")
    assert ended.code == 0, ended.err
    logs = (desk.project / ".hotloop").rglob("output.log")
    assert not any("mine" in log.read_text() for log in logs)


def test_standard_input_is_a_terminal_that_says_nothing(desk: Desk) -> None:
    """A script that asks a question is stopped by its limit, not by an error."""
    desk.write("import os\nprint(os.get_terminal_size(0).columns >= 0)\ninput('go on? ')")
    ours, users = os.openpty()
    try:
        ended = desk.finish(desk.start("profile", "--timeout", "2s", "train.py", stdin=users))
    finally:
        os.close(ours)
        os.close(users)
    ended.expect(90, "limit of 2 seconds", remedy="waits for input")
    assert 'train.py", line 3' in ended.err
    assert desk.printed().startswith("True\n")


ODD = "ä\udcff b"


def test_odd_names(desk: Desk) -> None:
    """Spaces, letters from elsewhere, and bytes that are no UTF-8 at all."""
    desk.write("import os, sys\nprint(ascii([sys.argv, os.environ['ODD']]))", "mein träning.py")
    words = ("mein träning.py", ODD)
    ended = desk.profile(*words, env={"ODD": ODD})
    ended.expect(89, "without importing torch", remedy="train")
    assert desk.printed() == desk.python(*words, env={"ODD": ODD}).out
    assert desk.study()["job"]["target"] == "mein träning.py"
