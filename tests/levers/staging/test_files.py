from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from hotloop.levers.caching.kept_items import Unfit
from hotloop.levers.staging.files import FEW, named_files, names_files


class Data:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    for name in ("a.bin", "b.bin", "train/0/c.bin", "train/1/d.bin", "train/.git/e.bin"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def found(dataset: Any, store: Path, most: int = 1000) -> list[str]:
    files = named_files(dataset, most, time.monotonic() + 60)
    return sorted(os.path.relpath(path, store) for path in files)


def test_files_by_name(store: Path) -> None:
    a, b = store / "a.bin", store / "b.bin"
    both = ["a.bin", "b.bin"]
    assert found(Data(path=str(a)), store) == ["a.bin"]
    assert found(Data(paths=[a, str(b), store / "none.bin"]), store) == both
    assert found(Data(samples=[(str(a), 0), (str(b), 1)]), store) == both
    assert found(Data(by_name={"a": a, "b": os.fsencode(b)}), store) == both
    assert found(Data(labels={str(a): 0, str(b): 1}), store) == both
    assert found([str(a), str(b)], store) == both
    assert found(Data(store=Data(where=a)), store) == ["a.bin"]


def test_relative_to_the_working_folder(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(store)
    assert found(Data(path="a.bin"), store) == ["a.bin"]


def test_arrays_of_paths(store: Path) -> None:
    numpy = pytest.importorskip("numpy")
    paths = [str(store / "a.bin"), str(store / "b.bin")]
    assert found(Data(paths=numpy.array(paths)), store) == ["a.bin", "b.bin"]
    assert found(Data(paths=numpy.array(paths, dtype=object)), store) == ["a.bin", "b.bin"]
    assert found(Data(numbers=numpy.zeros((3, 3))), store) == []


def test_datasets_in_datasets(store: Path) -> None:
    data = pytest.importorskip("torch").utils.data

    class Files(data.Dataset):  # type: ignore[misc, name-defined]
        def __init__(self, name: str) -> None:
            self.name = str(store / name)

        def __len__(self) -> int:
            return 4

    both = data.ConcatDataset([Files("a.bin"), data.Subset(Files("b.bin"), [1, 2])])
    assert found(data.Subset(both, range(3)), store) == ["a.bin", "b.bin"]


def test_all_in_a_folder_unless_its_files_are_named(store: Path) -> None:
    everything = ["train/0/c.bin", "train/1/d.bin"]  # not what is hidden
    assert found(Data(root=str(store / "train")), store) == everything
    # A table of labels beside the pictures does not mean that it alone is read.
    assert found(Data(root=store / "train", labels=store / "a.bin"), store) == [
        "a.bin",
        *everything,
    ]
    many = [store / "train" / f"{number}.bin" for number in range(FEW + 1)]
    for path in many:
        path.touch()
    assert len(found(Data(root=store / "train", paths=many), store)) == len(many)


def test_too_many(store: Path) -> None:
    with pytest.raises(Unfit, match="more than 1 files"):
        found(Data(root=store), store, most=1)
    with pytest.raises(Unfit, match="more than 1 files"):
        found(Data(paths=[store / "a.bin", store / "b.bin"]), store, most=1)


def test_too_slow_a_store(store: Path) -> None:
    with pytest.raises(Unfit, match="too long"):
        named_files(Data(root=store), 10, time.monotonic() - 1)


def test_a_long_list_of_other_things_is_not_asked_for(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    stat = os.stat

    def counted(path: Any, **how: Any) -> os.stat_result:
        asked.append(path)
        return stat(path, **how)

    monkeypatch.setattr(os, "stat", counted)
    text = Data(lines=[f"line {number}" for number in range(10_000)])
    assert not names_files(text) and found(text, store) == []
    assert len(asked) < 100


def test_odd_attributes(store: Path) -> None:
    class Odd:
        def __fspath__(self) -> str:
            raise RuntimeError

        @property
        def __dict__(self) -> Any:  # type: ignore[override]
            raise RuntimeError

    class Asked:
        @property
        def path(self) -> str:
            raise AssertionError("a property is not asked")

    me = Data(odd=Odd(), asked=Asked(), module=os, kind=Data, text="", nul="a\0b", many="x" * 9999)
    me.me = me  # type: ignore[attr-defined]
    me.path = store / "a.bin"  # type: ignore[attr-defined]
    assert found(me, store) == ["a.bin"]


def test_whether_it_names_any(store: Path) -> None:
    assert names_files(Data(root=store))
    assert names_files(Data(samples=[(store / "a.bin", 0)] * 1000))
    assert not names_files(Data(root=store / "none", split="train", count=3))
