from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from hotloop.runtime import temporary
from hotloop.runtime.look.frames import CACHES, DEEPEST, Frames, Places, is_of_ours, places
from hotloop.runtime.tracebacks import OURS


@pytest.fixture
def frames() -> Frames:
    return Frames()


def test_a_stack_from_the_outermost_line_in(frames: Frames) -> None:
    def inner() -> list[int]:
        return frames.stack(sys._getframe())

    stack = [frames.known[number] for number in inner()]
    assert stack[-1].function.endswith("inner")
    assert stack[-2].function == "test_a_stack_from_the_outermost_line_in"
    assert stack[-2].source == "stack = [frames.known[number] for number in inner()]"


def test_a_line_is_kept_once(frames: Frames) -> None:
    stacks = [frames.stack(sys._getframe()) for _ in range(3)]
    assert len({tuple(stack) for stack in stacks}) == 1
    assert len(frames.known) == len(set(stacks[0]))


def test_what_was_taken_down_can_be_numbered_later(frames: Frames) -> None:
    def inner() -> tuple[Places, int, int]:
        here = sys._getframe()
        taken, line = places(here), here.f_lineno
        return taken, line, frames.number(here)

    taken, line, later = inner()
    innermost = frames.known[frames.numbered(taken)[-1]]
    assert (innermost.line, innermost.function) == (line, frames.known[later].function)
    assert frames.numbered(taken) == frames.numbered(taken)


def called(*files: str) -> Places:
    """From the innermost out."""
    return [(compile("", file, "exec"), 0) for file in files]


def test_a_probe_at_work_is_told_from_what_passes_through_one(torch: ModuleType) -> None:
    probe, wrapper, script = (
        OURS + "runtime/look/memory.py",
        OURS + "runtime/patches.py",
        "train.py",
    )
    assert is_of_ours(called(probe, wrapper, script))
    assert is_of_ours(called(json.__file__, probe, wrapper, script))
    assert is_of_ours(called(wrapper, json.__file__, probe, script))  # a file is opened: shielded
    assert not is_of_ours(called(str(torch.__file__), probe, script))
    assert not is_of_ours(called(script, json.__file__, wrapper, script))
    assert not is_of_ours(called("dataset.py", probe, script))
    assert not is_of_ours(called(script))


def test_whose_a_file_is(frames: Frames, torch: ModuleType) -> None:
    assert frames.is_users(__file__)
    assert not frames.is_users(json.__file__)
    assert not frames.is_users(str(torch.__file__))
    assert not frames.is_users(OURS + "runtime/child.py")
    assert not frames.is_users("<string>")
    assert not frames.is_users(str(msgspec.__file__))


def test_what_another_environment_has_installed_is_nobodys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("site-packages", "dist-packages", "mine"):
        monkeypatch.syspath_prepend(str(tmp_path / folder))
    frames = Frames()
    assert not frames.is_users(str(tmp_path / "site-packages" / "graphs" / "pool.py"))
    assert not frames.is_users(str(tmp_path / "dist-packages" / "graphs.py"))
    assert frames.is_users(str(tmp_path / "mine" / "graphs.py"))


def test_what_lies_beside_the_script_is_the_users_even_where_installed(
    frames: Frames, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = os.path.dirname(str(pytest.__file__))
    main = ModuleType("__main__")
    main.__file__ = os.path.join(folder, "train.py")
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert frames.is_users(os.path.join(folder, "model.py"))
    assert not frames.is_users(json.__file__)


@pytest.mark.parametrize("cache", CACHES)
def test_code_that_is_written_as_the_trial_runs_is_nobodys(
    cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where the folder of our own lies beside the script."""
    main = ModuleType("__main__")
    main.__file__ = str(tmp_path / "train.py")
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setenv(cache, str(tmp_path / ".hotloop" / "cache"))
    monkeypatch.setattr(temporary, "_apart", [str(tmp_path / "apart")])
    made = Frames()
    assert made.is_users(str(tmp_path / "model.py"))
    assert not made.is_users(str(tmp_path / ".hotloop" / "cache" / "tt" / "cttg.py"))
    assert not made.is_users(str(tmp_path / "apart" / "_remote_module.py"))
    monkeypatch.setenv(cache, str(tmp_path))  # whoever says so himself has his script there
    assert Frames().is_users(str(tmp_path / "model.py"))


def test_from_such_code_one_walks_on_to_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(temporary, "_apart", [str(tmp_path)])
    made, written = Frames(), tmp_path / "written.py"
    made_code = compile("def call(function): return function()", str(written), "exec")
    exec(made_code, scope := {})  # type: ignore[var-annotated]
    number = scope["call"](lambda: made.line(sys._getframe(1)))
    assert number is not None and made.known[number].file == __file__


def test_the_users_line_behind_a_librarys(frames: Frames) -> None:
    found: list[int | None] = []

    class Noting(json.JSONEncoder):
        def default(self, o: object) -> object:
            found.append(frames.line(sys._getframe(1)))  # from inside the library
            return None

    json.dumps({1}, cls=Noting)
    assert found[0] is not None
    assert frames.known[found[0]].source == "json.dumps({1}, cls=Noting)"


def test_no_line_of_the_users(frames: Frames) -> None:
    assert frames.line(None) is None


def test_a_deep_recursion_is_cut(frames: Frames) -> None:
    def dig(depth: int) -> list[int]:
        return dig(depth - 1) if depth else frames.stack(sys._getframe())

    assert len(dig(3 * DEEPEST)) == DEEPEST
