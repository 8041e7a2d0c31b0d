from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from hotloop.errors import JobInvalid
from hotloop.runtime.owned import reference

JOB = """\
import hotloop

class Mine(hotloop.TrainingJob):
    batch_size = 64
    hidden = 256
    rate = 0.1
    wide = False
    path = "data"
    extra = None

    def model(self): ...
    def data(self): ...
    def loss(self, model, batch): ...
    def optimizer(self, parameters): ...

class Half(hotloop.TrainingJob):
    def model(self): ...
    data = None

class Other:
    pass
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    path = tmp_path / "some_jobs.py"
    path.write_text(JOB)
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return str(path)


def load(file: str, entry: str = "Mine", *words: str) -> Any:
    return reference.load(file, entry, False, list(words))


def test_a_class_in_a_file(file: str) -> None:
    job = load(file)
    assert (type(job).__name__, job.batch_size) == ("Mine", 64)
    assert type(job).__module__ == "some_jobs"  # so it can be pickled, and found again


def test_a_class_in_a_module(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(file).parent))
    assert type(reference.load("some_jobs", "Mine", True, [])).__name__ == "Mine"


def test_a_file_named_like_a_module_of_others(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text(JOB)
    assert type(load(str(tmp_path / "json.py"))).__module__ == "job_json"


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("hidden=8", 8),
        ("rate=2", 2.0),
        ("wide=true", True),
        ("wide=0", False),
        ("path=a=b", "a=b"),
        ("extra=[1, 2]", [1, 2]),
        ("extra=word", "word"),
        ("microbatch=4", 4),  # of the class it inherits from
    ],
)
def test_settings(word: str, value: object, file: str) -> None:
    found = getattr(load(file, "Mine", word), word.partition("=")[0])
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("hiden=8", "'hiden' is no setting of Mine"),
        ("--hidden", "'--hidden' is not name=value"),
        ("model=3", "'model' is no setting"),
        ("hidden=many", "hidden of Mine cannot be 'many'"),
        ("wide=maybe", "wide of Mine cannot be 'maybe'"),
    ],
)
def test_settings_that_are_none(word: str, says: str, file: str) -> None:
    with pytest.raises(JobInvalid, match=says) as caught:
        load(file, "Mine", word)
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("entry", "says", "remedy"),
    [
        ("Nothing", "There is no class Nothing", "It has Mine, Half."),
        ("Other", "Other in .* is not a class that inherits", "class Other"),
        ("hotloop", "is not a class that inherits", "class hotloop"),
        ("Half", r"Half.data is not a method", "a Dataset"),
    ],
)
def test_classes_that_are_no_job(entry: str, says: str, remedy: str, file: str) -> None:
    with pytest.raises(JobInvalid, match=says) as caught:
        load(file, entry)
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("name", ["model", "data", "loss", "optimizer"])
def test_a_method_that_is_missing(name: str, tmp_path: Path) -> None:
    path = tmp_path / f"lacks_{name}.py"
    path.write_text(JOB.replace(f"    def {name}(", f"    def no_{name}(", 1))
    with pytest.raises(JobInvalid, match=rf"Mine has no method {name}\(self") as caught:
        load(str(path))
    assert reference.RETURNS[name] in caught.value.remedy


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("import no_such_module", "cannot be imported: ModuleNotFoundError: No module named"),
        ("def (", "cannot be imported: SyntaxError"),
        ("1 / 0", "cannot be imported: ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(3)", "ended the program while it was imported"),
    ],
)
def test_a_file_that_cannot_be_imported(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "spoilt.py").write_text(text)
    with pytest.raises(JobInvalid, match=says) as caught:
        load(str(tmp_path / "spoilt.py"))
    assert caught.value.__cause__ is not None  # whose traceback is shown


def test_a_constructor_that_needs_something(tmp_path: Path) -> None:
    path = tmp_path / "needy.py"
    path.write_text(JOB.replace("    hidden = 256", "    def __init__(self, hidden): ..."))
    with pytest.raises(JobInvalid, match="Mine cannot be made without arguments"):
        load(str(path))


def test_a_constructor_that_fails_fails_as_it_would(tmp_path: Path) -> None:
    path = tmp_path / "fails.py"
    path.write_text(JOB.replace("    hidden = 256", "    def __init__(self): len(3)"))
    with pytest.raises(TypeError, match="has no len"):
        load(str(path))
