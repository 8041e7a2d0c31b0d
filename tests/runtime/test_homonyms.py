from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from hotloop.runtime.homonyms import beside

START = """
import sys
sys.path.remove("")  # it comes there after us
before = tuple(sys.modules)
import json.decoder, os, statistics, fractions, types, functools
from hotloop.runtime import homonyms
homonyms.forget(before)
sys.path.insert(0, sys.orig_argv[-1])
import json as anew, statistics as local, fractions as usual
print(anew.__file__, local.__file__, usual.__file__, "json.decoder" in sys.modules)
assert statistics.mean([1, 3]) == 2 and os.path.join
"""


@pytest.mark.parametrize("code", ["beside", "none", "a folder"])
def test_what_lies_beside_the_script_is_what_it_imports(code: str, tmp_path: Path) -> None:
    if code == "beside":
        (tmp_path / "statistics.py").write_text("mine = True")
        (tmp_path / "json").mkdir()
        (tmp_path / "json/__init__.py").touch()
    elif code == "a folder":  # of data, say
        (tmp_path / "statistics").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", START, str(tmp_path)], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    anew, local, usual, whole = done.stdout.split()
    library = str(Path(json.__file__).parents[1])
    assert (Path(local).parent == tmp_path) is (code == "beside")
    assert anew.startswith(str(tmp_path) if code == "beside" else library)
    assert usual.startswith(library)
    assert whole == str(code != "beside")


@pytest.mark.parametrize(
    ("arguments", "folder"),
    [
        (["train.py", "-m", "x"], "/job"),
        (["-u", "src/train.py"], "/job/src"),
        (["-X", "utf8", "-W", "ignore", "/else/train.py"], "/else"),
        (["-m", "package.train", "/data/x"], "/job"),
        (["-c", "print()"], "/job"),
        ([], "/job"),
    ],
)
def test_where_python_looks_first(arguments: list[str], folder: str) -> None:
    assert beside(arguments, "/job") == folder
