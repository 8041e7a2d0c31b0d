"""A study as it may be kept, without a word of where it was run or of other people's source."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hotloop import codec
from hotloop.diagnose.case import case_of
from hotloop.diagnose.diagnosis import Diagnosis, diagnose
from hotloop.figures import figures
from hotloop.profiling import looked_into
from hotloop.study import Study

ROOT = Path(__file__).resolve().parents[1]


def keep(study: Path, record: Path, names: Mapping[str, str], is_ours: bool = True) -> None:
    """`names`: what folders are called instead. `is_ours`: whether its source lines may stay."""
    known = {sys.prefix: "/venv", sys.base_prefix: "/usr", str(ROOT): ""}
    known = {**names} | known | {str(Path(sys.executable).parent): "/venv/bin"}
    known[str(Path.home())] = "~"  # last: some of the others may lie in it
    text = study.read_text(encoding="utf-8")
    for path, name in known.items():
        text = text.replace(path, name)
    document = json.loads(text)
    document["machine"]["system"] = document["machine"]["system"].split()[0]
    if not is_ours:
        _blank_sources(document)
    record.parent.mkdir(parents=True, exist_ok=True)
    packed = json.dumps(document, separators=(",", ":"), ensure_ascii=False)
    record.write_bytes(gzip.compress(packed.encode(), mtime=0))


def diagnosed_again(record: Path) -> Diagnosis:
    """By the rules as they are now."""
    study = codec.decode(gzip.decompress(record.read_bytes()), Study)
    timed = study.trials[0]
    assert timed.measurement is not None
    found = figures(timed.measurement)
    assert found is not None
    looked = looked_into(study)
    case = case_of(timed.measurement, found, study.machine, looked, study.roof, timed)
    return diagnose(case)


def _blank_sources(value: Any) -> None:
    if isinstance(value, dict):
        if isinstance(value.get("source"), str):
            value["source"] = ""
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            _blank_sources(one)
