from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from hotloop.runtime.imports import when_imported

NAME = "hotloop_test_module"


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    finders, path = list(sys.meta_path), list(sys.path)
    yield
    sys.meta_path[:], sys.path[:] = finders, path
    for name in [name for name in sys.modules if name.startswith(NAME)]:
        del sys.modules[name]
    importlib.invalidate_caches()


@pytest.fixture
def called() -> list[ModuleType]:
    return []


def write(folder: Path, text: str = "value = 1\n", package: bool = False) -> None:
    path = folder / NAME / "__init__.py" if package else folder / f"{NAME}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    if package:
        (folder / NAME / "part.py").write_text("")
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()


@pytest.mark.parametrize("package", [False, True])
def test_called_once_and_with_the_module_ready(
    package: bool, tmp_path: Path, called: list[ModuleType]
) -> None:
    write(tmp_path, package=package)
    values: list[int] = []

    def action(module: ModuleType) -> None:
        called.append(module)
        values.append(module.value)

    when_imported(NAME, action)
    assert called == []
    module = importlib.import_module(NAME)
    assert called == [module]
    assert values == [1]
    importlib.import_module(NAME)
    importlib.reload(module)
    assert called == [module]


def test_a_part_of_a_package_imports_the_whole(tmp_path: Path, called: list[ModuleType]) -> None:
    write(tmp_path, package=True)
    when_imported(NAME, called.append)
    importlib.import_module(f"{NAME}.part")
    assert called == [sys.modules[NAME]]


def test_asking_whether_it_is_there_does_not_use_it_up(
    tmp_path: Path, called: list[ModuleType]
) -> None:
    write(tmp_path)
    when_imported(NAME, called.append)
    for _ in range(2):
        assert importlib.util.find_spec(NAME) is not None
    assert called == []
    assert NAME not in sys.modules
    importlib.import_module(NAME)
    assert len(called) == 1


def test_what_was_imported_already(called: list[ModuleType]) -> None:
    before = list(sys.meta_path)
    when_imported("json", called.append)
    assert called == [sys.modules["json"]]
    assert sys.meta_path == before


def test_what_is_not_there_is_still_not_there(called: list[ModuleType]) -> None:
    when_imported(NAME, called.append)
    assert importlib.util.find_spec(NAME) is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(NAME)
    assert called == []


def test_an_import_that_fails_may_succeed_later(tmp_path: Path, called: list[ModuleType]) -> None:
    write(tmp_path, "raise RuntimeError('not yet')\n")
    when_imported(NAME, called.append)
    with pytest.raises(RuntimeError, match="not yet"):
        importlib.import_module(NAME)
    assert called == []
    (tmp_path / f"{NAME}.py").write_text("value = 'another length'\n")
    importlib.invalidate_caches()
    importlib.import_module(NAME)
    assert len(called) == 1


def test_several_actions_share_one_finder(tmp_path: Path, called: list[ModuleType]) -> None:
    write(tmp_path)
    finders = len(sys.meta_path)
    when_imported(NAME, called.append)
    when_imported(NAME, called.append)
    when_imported(f"{NAME}_other", called.append)
    assert len(sys.meta_path) == finders + 1
    importlib.import_module(NAME)
    assert len(called) == 2


def test_the_modules_loader_keeps_its_type(tmp_path: Path, called: list[ModuleType]) -> None:
    """Some libraries ask what it is, and inspect finds sources through it."""
    write(tmp_path)
    when_imported(NAME, called.append)
    module = importlib.import_module(NAME)
    assert type(module.__loader__) is importlib.machinery.SourceFileLoader
    assert module.__spec__ is not None
    assert module.__spec__.loader is module.__loader__


def test_other_finders_come_after_ours(tmp_path: Path, called: list[ModuleType]) -> None:
    """A library that loads the module in a way of its own is not passed over."""
    write(tmp_path, "value = 'from the path'\n")
    when_imported(NAME, called.append)

    class Finder:
        def find_spec(self, name: str, path: object = None, target: object = None) -> object:
            if name != NAME:
                return None
            elsewhere = tmp_path / "elsewhere.py"
            elsewhere.write_text("value = 'from the finder'\n")
            return importlib.util.spec_from_file_location(name, elsewhere)

    sys.meta_path.insert(1, Finder())  # type: ignore[arg-type]
    assert importlib.import_module(NAME).value == "from the finder"
    assert [module.value for module in called] == ["from the finder"]
