"""What TraceML says of a planted job, its loop edit applied to a copy of the script.

TraceML (`traceml-ai` on PyPI) asks for two edits: `traceml.init(mode="auto")` at the beginning and
`with traceml.trace_step(model):` around the body of the training loop. A script without a loader
gets a third, `wrap_dataloader_fetch`, without which TraceML gives no verdict. It is installed apart
from this project, into a virtual environment of its own, without what this interpreter has already:

    python -m venv /tmp/traceml-venv
    /tmp/traceml-venv/bin/pip install --no-deps traceml-ai pyyaml
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from planted.suite import FOLDER, Planted

HOME = Path(os.environ.get("TRACEML_VENV", "/tmp/traceml-venv"))
NOT_INSTALLED = "not installed"
LIMIT_SECONDS = 240


def verdict(planted: Planted, steps: int) -> str:
    """The status of its primary diagnosis."""
    packages = next(HOME.glob("lib/python*/site-packages"), None)
    if packages is None or not (packages / "traceml_ai").exists():
        return NOT_INSTALLED
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(FOLDER / "library", folder / "library")
        script = folder / planted.script.name
        script.write_text(edited(planted.script.read_text(encoding="utf-8")), encoding="utf-8")
        _run(script, [*planted.arguments, "--steps", str(steps)], packages, folder)
        summary = folder / "logs" / "run" / "final_summary.json"
        if not summary.exists():
            return "no summary"
        return spoken(json.loads(summary.read_text(encoding="utf-8")))


def _run(script: Path, arguments: list[str], packages: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "traceml_ai.launcher.cli", "run", "--run-name", "run"]
    command += ["--logs-dir", str(folder / "logs"), str(script), "--args", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    with (folder / "output.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        )
        try:
            process.wait(LIMIT_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()


def spoken(summary: dict[str, dict[str, object]]) -> str:
    primary = summary.get("primary_diagnosis") or {}
    return str(primary.get("status") or primary.get("kind") or "no diagnosis")


def edited(source: str) -> str:
    """The script with TraceML's edits, in the innermost loop that steps an optimizer."""
    tree = ast.parse(source)
    loops = [node for node in ast.walk(tree) if isinstance(node, ast.For) and _steps(node)]
    if not loops:
        raise ValueError("no training loop found")
    loop = loops[-1]
    if ast.unparse(loop.iter).startswith("range("):
        fetched = f"traceml.wrap_dataloader_fetch({ast.unparse(loop.iter)})"
        loop.iter = ast.parse(fetched, mode="eval").body
    traced = ast.parse("with traceml.trace_step(model):\n    pass").body[0]
    assert isinstance(traced, ast.With)
    traced.body = loop.body
    loop.body = [traced]
    start = "import traceml_ai as traceml\ntraceml.init(mode='auto')"
    last = max(
        i for i, node in enumerate(tree.body) if isinstance(node, ast.Import | ast.ImportFrom)
    )
    tree.body[last + 1 : last + 1] = ast.parse(start).body
    return ast.unparse(ast.fix_missing_locations(tree))


def _steps(loop: ast.For) -> bool:
    return any(
        isinstance(node, ast.Call) and ast.unparse(node.func) == "optimizer.step"
        for node in ast.walk(loop)
    )
