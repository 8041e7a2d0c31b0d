"""The rules of docs/architecture.md, kept by looking at the source itself."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter

import pytest

from hotloop.cli import commands
from tests.sources import PACKAGE, ROOT, Module, below, modules, reached_from

CHILD = [
    *below("hotloop.runtime"),
    *below("hotloop.measurement", "hotloop.evidence", "hotloop.inspection", "hotloop.depth"),
    *below("hotloop.trial.spec", "hotloop.trial.result"),
    *below("hotloop.levers", "hotloop.errors", "hotloop.seams", "hotloop.topology"),
    *below("hotloop.collecting", "hotloop.processes", "hotloop.tried", "hotloop.unused"),
    *below("hotloop.turns"),
    *below("hotloop.trial.enter", "hotloop.trial.kernel"),
    *below("hotloop.training", "hotloop.training_job", "hotloop.plan", "hotloop.job"),
]
"""What runs in the user's own interpreter, which need not have anything of ours installed."""

PURE = (
    "hotloop.stats",
    "hotloop.search",
    "hotloop.equivalence",
    "hotloop.evidence",
    "hotloop.inspection",
    "hotloop.tried",
    "hotloop.unused",
    "hotloop.depth",
    "hotloop.job",
    "hotloop.plan",
    "hotloop.study",
    "hotloop.measurement",
    "hotloop.figures",
    "hotloop.timeline",
    "hotloop.turns",
    "hotloop.phases",
    "hotloop.report",
)

MOST_LINES = 300
MOST_LINES_OF_A_FUNCTION = 60


def top(name: str) -> str:
    return name.partition(".")[0]


def each(chosen: list[Module]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("module", chosen, ids=lambda module: module.name)


def test_imports_are_seen_for_what_they_are() -> None:
    """The other tests would be content with seeing none."""
    profile = modules()["hotloop.cli.profile"]
    assert "hotloop.cli.job" in profile.at_once
    assert "hotloop.trial.launch" in profile.ever - profile.at_once  # by a function
    assert "hotloop.trial.trial" not in profile.ever  # for its types alone
    assert reached_from("hotloop.study")["msgspec"] == ["hotloop.study", "hotloop.codec", "msgspec"]
    for command in commands.SUMMARIES:
        assert "hotloop.trial.launch" not in reached_from(f"hotloop.cli.{command}")


def is_workload(module: Module) -> bool:
    """Jobs as users write them: they run in the child, and are named rather than imported."""
    return module.name.startswith("hotloop.workloads.")


@each([module for module in modules().values() if not is_workload(module)])
def test_nothing_imports_a_workload(module: Module) -> None:
    assert not any(name.startswith("hotloop.workloads.") for name in module.ever)


@each([module for module in modules().values() if not is_workload(module)])
def test_torch_is_imported_late_and_in_the_child_alone(module: Module) -> None:
    assert "torch" not in module.at_once
    if not module.name.startswith(("hotloop.runtime.", "hotloop.levers.")):
        assert "torch" not in module.ever


@each(CHILD)
def test_the_child_needs_nothing_but_the_standard_library(module: Module) -> None:
    for name, way in reached_from(module.name).items():
        assert top(name) in sys.stdlib_module_names or top(name) == "hotloop", " → ".join(way)
    foreign = {top(name) for name in module.ever} - set(sys.stdlib_module_names)
    assert foreign <= {"hotloop", "torch"}
    ours = {name for name in module.ever if top(name) == "hotloop"}
    packages = {"hotloop", "hotloop.trial"}  # whose __init__ is reached on the way, and is empty
    assert ours <= {one.name for one in CHILD} | packages


@each(below(*PURE))
def test_values_and_reports_know_nothing_of_the_child(module: Module) -> None:
    for name, way in reached_from(module.name).items():
        assert not name.startswith(("hotloop.runtime", "torch")), " → ".join(way)
    assert not any(name.startswith("hotloop.runtime") for name in module.ever)


def test_the_child_starts_in_a_bare_interpreter() -> None:
    """Without site-packages there is nothing else that it could import."""
    names = [module.name for module in CHILD if ".site." not in module.name]
    names.remove("hotloop.trial.enter")  # a program
    start = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})"
    script = "\n".join([start, *(f"import {name}" for name in names)])
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_the_parent_starts_where_there_is_no_torch() -> None:
    names = [
        module.name
        for module in modules().values()
        if not module.name.startswith(("hotloop.runtime.", "hotloop.workloads."))
        and not module.name.endswith("__main__")
    ]
    start = "import sys; sys.modules['torch'] = None"
    script = "\n".join([start, *(f"import {name}" for name in names)])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


def test_no_packages_import_each_other_in_a_circle() -> None:
    """A package counts as one, and so does each module that lies beside them."""
    graph: dict[str, set[str]] = {}
    for module in modules().values():
        own = ".".join(module.name.split(".")[:2])
        used = {".".join(name.split(".")[:2]) for name in module.ever if top(name) == "hotloop"}
        graph.setdefault(own, set()).update(used - {own, "hotloop"})
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" → ".join(error.args[1]))


@pytest.mark.parametrize("name", commands.SUMMARIES)
def test_a_command_explains_itself(name: str) -> None:
    command, summary = commands.module(name), commands.SUMMARIES[name]
    for text in (summary, command.DESCRIPTION, command.USAGE):
        assert isinstance(text, str) and text.strip()
    assert "\n" not in summary and not summary.endswith(".")
    assert command.USAGE.startswith(f"hotloop {name} ")
    assert callable(command.run) and callable(command.add_arguments)


@each(list(modules().values()))
def test_files_and_functions_are_short(module: Module) -> None:
    assert len(module.path.read_text(encoding="utf-8").splitlines()) <= MOST_LINES
    for function in module.functions():
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        assert lines <= MOST_LINES_OF_A_FUNCTION, function.name


@each(list(modules().values()))
def test_nothing_prints(module: Module) -> None:
    """Standard output is what was asked for, and is written in one place a command."""
    calls = (node for node in ast.walk(module.tree) if isinstance(node, ast.Call))
    names = [call.func.id for call in calls if isinstance(call.func, ast.Name)]
    assert "print" not in names


@each([module for module in modules().values() if module.path.name != "__main__.py"])
def test_a_file_says_what_it_is_for(module: Module) -> None:
    assert ast.get_docstring(module.tree)


def tracked() -> list[str]:
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        done = subprocess.run(words, cwd=ROOT, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is no git checkout")
    return [name for name in done.stdout.decode().split("\0") if name]


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    places = "|".join(["home", "root", "Users", "work"])
    somewhere = re.compile(rf"(?<![\w.~:/-])/(?:{places})/[\w.]")
    found = []
    for name in tracked():
        path = ROOT / name
        if not path.is_file():
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            if somewhere.search(line):
                found.append(f"{name}:{number}: {line.strip()[:100]}")
    assert found == []


@pytest.mark.parametrize(
    "words", [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",)], ids=" ".join
)
def test_tools_find_nothing(words: tuple[str, ...]) -> None:
    if importlib.util.find_spec(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed here")
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
