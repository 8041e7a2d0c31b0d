"""A study that is kept tells nothing of where it was run."""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from keeping import keep

STUDY = {
    "machine": {"system": "Linux 6.1.0-of-somebody", "cores": 2},
    "job": {"python": sys.executable, "cwd": "/data/somebody/jobs"},
    "trials": [{"stack": [{"file": "/data/somebody/jobs/train.py", "source": "x = y"}]}],
    "diagnosis": {"places": [{"source": "loss.item()", "line": 3}]},
}


def kept(folder: Path, is_ours: bool) -> Any:
    study, record = folder / "study.json", folder / "kept" / "study.json.gz"
    study.write_text(json.dumps(STUDY), encoding="utf-8")
    keep(study, record, {"/data/somebody/jobs": "/project"}, is_ours)
    return json.loads(gzip.decompress(record.read_bytes()))


@pytest.mark.parametrize("is_ours", [True, False])
def test_nothing_is_said_of_where_it_was_run(is_ours: bool, tmp_path: Path) -> None:
    found = kept(tmp_path, is_ours)
    assert found["machine"] == {"system": "Linux", "cores": 2}
    assert found["job"]["python"].startswith(("/venv/", "/usr/"))
    assert found["trials"][0]["stack"][0]["file"] == "/project/train.py"
    assert "somebody" not in json.dumps(found)


def test_only_our_own_source_stays(tmp_path: Path) -> None:
    ours, others = kept(tmp_path, True), kept(tmp_path, False)
    assert ours["diagnosis"]["places"][0] == {"source": "loss.item()", "line": 3}
    assert others["diagnosis"]["places"][0] == {"source": "", "line": 3}
    assert others["trials"][0]["stack"][0]["source"] == ""
