from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.trial import stacks

HEAD = "Thread 0x00007f (most recent call first):\n"


def frame(file: str, function: str, source: str = "") -> str:
    line = f'  File "/lib/{file}", line 7 in {function}\n'
    return line + f"    {source}\n" if source else line


def test_lines_of_source_are_added_and_frames_of_ours_left_out(tmp_path: Path) -> None:
    script, stack = tmp_path / "train.py", tmp_path / "stack.txt"
    script.write_text("import sys\nname = input()\n")
    ours = Path(stacks.__file__).parents[1] / "runtime" / "child.py"
    stack.write_text(f'{HEAD}  File "{ours}", line 1 in x\n  File "{script}", line 2 in <module>\n')
    told = stacks.of_the_script(stack)
    assert told == f'{HEAD}  File "{script}", line 2 in <module>\n    name = input()'
    assert stacks.waits_for_input(told)
    assert stacks.of_the_script(tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("source", "waits"),
    [
        ('name = input("name? ")', True),
        ("for line in sys.stdin:", True),
        ("line = self.stdin.readline()", True),
        ("y = self.input(x)", False),
        ("y = model_input(x)", False),
        ("y = torch.relu(input)", False),
        ("", False),
    ],
)
def test_who_waits_for_input(source: str, waits: bool) -> None:
    assert stacks.waits_for_input(HEAD + frame("train.py", "main", source)) == waits


def test_only_what_the_main_thread_does_at_last_counts() -> None:
    reading = frame("train.py", "listen", "command = input()")
    training = frame("train.py", "main", "step()")
    assert not stacks.waits_for_input(HEAD + reading + "\n" + HEAD + training)
    assert not stacks.waits_for_input(HEAD + training + reading)
    assert stacks.waits_for_input(HEAD + training + "\n" + HEAD + reading)
    assert stacks.waits_for_input(HEAD + frame("getpass.py", "_raw_input"))
    assert not stacks.waits_for_input("")


@pytest.mark.parametrize(
    ("frames", "children", "spawned"),
    [
        (frame("multiprocessing/process.py", "join", "self._popen.wait()"), True, False),
        (frame("multiprocessing/connection.py", "wait") + frame("train.py", "main"), False, False),
        (frame("torch/multiprocessing/spawn.py", "join"), True, True),
        (frame("torch/distributed/run.py", "run"), True, False),
        (frame("torch/distributed/launcher/api.py", "launch_agent"), True, False),
        (frame("torch/distributed/elastic/agent/server/api.py", "_invoke_run"), True, False),
        # `record` stands around the main function of what is launched.
        (frame("torch/distributed/elastic/multiprocessing/errors/__init__.py", "f"), False, False),
        (
            frame("multiprocessing/process.py", "join", "x")
            + frame("multiprocessing/pool.py", "join"),
            False,
            False,
        ),
        (
            frame("multiprocessing/process.py", "join")
            + frame("torch/utils/data/dataloader.py", "_shutdown_workers"),
            False,
            False,
        ),
        ("", False, False),
    ],
)
def test_who_waits_for_children(frames: str, children: bool, spawned: bool) -> None:
    assert stacks.waits_for_children(HEAD + frames) == children
    assert stacks.waits_for_spawned(HEAD + frames) == spawned
