"""What documents say of the program is what the program does."""

from __future__ import annotations

import importlib.util
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hotloop
from hotloop import codec, schema
from hotloop.cli import commands, manual
from tests.report.rich import rich
from tests.sources import ROOT

GENERATED = "is not current: python docs/generate.py writes it anew"


def generated() -> dict[Path, str]:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Callable[[], dict[Path, str]] = module.made
    return made()


def test_generated_documents_are_current() -> None:
    for path, text in generated().items():
        assert path.exists() and path.read_text(encoding="utf-8") == text, f"{path} {GENERATED}"


def test_no_manual_page_is_left_of_a_command_that_is_gone() -> None:
    pages = {path.stem for path in (ROOT / "docs" / "commands").glob("*.md")}
    assert pages == {*commands.SUMMARIES, "index"}


def test_a_manual_page_has_every_option() -> None:
    page = manual.page("report")
    assert page.startswith("# hotloop report\n\nMake the report of a study")
    assert "| `--html FILE` | write the page here" in page
    assert "| `[STUDY]` | a folder under .hotloop" in page
    compared = manual.page("compare")
    assert "how much slower is too much (default: 5%)" in compared


USAGES = {
    "optimize": "optimize.md",
    "profile": "profile.md",
    "report": "report.md",
    "compare": "compare.md",
    "doctor": "doctor.md",
    "experiment": "lab.md",
}


@pytest.mark.parametrize(("command", "page"), USAGES.items())
def test_the_usage_that_a_page_begins_with_has_every_option(command: str, page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    (usage, *_) = [part for part in text.split("```")[1::2] if f"hotloop {command} " in part]
    known = re.findall(r"^\| (?:`-\w`, )?`(--[\w-]+)", manual.page(command), re.M)
    assert known and [option for option in known if f"{option}" not in usage] == []


@pytest.mark.parametrize("name", ["optimize", "profile", "train"])
def test_the_page_of_described_jobs_has_every_argument(name: str) -> None:
    page = (ROOT / "docs" / "jobs.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `hotloop.{name}(")]
    parameters = inspect.signature(getattr(hotloop, name)).parameters.values()
    for one in parameters:
        if one.kind in (one.KEYWORD_ONLY, one.POSITIONAL_OR_KEYWORD):
            assert re.search(rf"\b{one.name}\b", row), one.name


class TestSchema:
    def valid(self, value: Any, part: dict[str, Any], parts: dict[str, Any]) -> bool:
        """The few words of JSON schema that ours uses."""
        if "$ref" in part:
            return self.valid(value, parts[part["$ref"].rpartition("/")[2]], parts)
        if "anyOf" in part:
            return any(self.valid(value, one, parts) for one in part["anyOf"])
        if "enum" in part:
            return value in part["enum"]
        kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
        kind = part.get("type")
        if kind in ("integer", "number"):
            return isinstance(value, int if kind == "integer" else int | float)
        if kind is not None and not isinstance(value, kinds[kind]):
            return False
        if isinstance(value, list) and isinstance(part.get("items"), dict):
            return all(self.valid(each, part["items"], parts) for each in value[:50])
        if isinstance(value, dict) and "properties" in part:
            known = part["properties"]
            whole = set(part.get("required", ())) <= value.keys() <= known.keys()
            return whole and all(self.valid(value[key], known[key], parts) for key in value)
        return True

    def test_a_study_is_valid(self) -> None:
        made = schema.study_schema()
        document = json.loads(codec.encode(rich()))
        assert self.valid(document, made, made["$defs"])
        document["trials"][0]["seconds"] = "long"
        assert not self.valid(document, made, made["$defs"])

    def test_fields_say_what_they_are(self) -> None:
        parts = schema.study_schema()["$defs"]
        trial = parts["Trial"]["properties"]
        assert trial["hung_at"]["description"] == "Where a script that ran out of time was."
        assert "deep" in trial and "DepthReport" in parts


def test_the_site_is_built_and_loads_nothing(tmp_path: Path) -> None:
    if importlib.util.find_spec("material") is None:
        pytest.skip("mkdocs-material is not installed: make docs builds the site")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 20
    loaded = re.compile(r"""<(?:script|img|iframe)[^>]+src="https?:|<link[^>]+href="https?:""")
    assert [page.name for page in pages if loaded.search(page.read_text("utf-8"))] == []


def test_links_between_documents_lead_somewhere() -> None:
    missing = []
    for page in (ROOT / "docs").rglob("*.md"):
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if "://" not in target and not (page.parent / target).exists():
                missing.append(f"{page.name}: {target}")
    assert missing == []
