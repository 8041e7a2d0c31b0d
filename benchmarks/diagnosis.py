"""Is the diagnosis right? Planted jobs, each limited by one known thing, are diagnosed.

    python benchmarks/diagnosis.py [--only NAME …] [--pairs 3] [--no-gains] [--no-traceml]
        [--where gpu] [--record FOLDER | --recorded FOLDER] [--gains FILE]

For each job that this machine can run: what `hotloop profile` finds first, against what was planted
(rule, cause and line); the gain that the finding predicts, against the gain that removing the
planted thing really gives, in interleaved pairs of processes; and what TraceML says of it.

`--record` keeps each study, without the paths of this machine: what a GPU showed can then be
diagnosed again where there is none, which `--recorded` does. The true gains are measured anyway,
unless `--gains` names earlier results to take them from, and TraceML's words with them.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import traceml_verdict
from elsewhere import environment
from keeping import ROOT, diagnosed_again, keep
from planted.suite import FOLDER, SUITE, Planted
from quiet import undisturbed
from true_gain import Gain, true_gain

from hotloop import codec
from hotloop.report.diagnosis_rows import plain

RESULTS = ROOT / "benchmarks" / "results"
CLOSE = 0.25
"""A prediction counts as right within this share of the true gain."""


@dataclass(frozen=True)
class Row:
    job: str
    expected: str
    found: str
    right: bool
    """The rule, and inside it the cause, or rightly nothing."""
    line_expected: int | None
    line_found: bool | None
    """Whether one of the places is the planted line. None: there is no such line."""
    predicted: float | None
    true: Gain | None
    within: bool | None
    """Whether the predicted gain is near the true one. None: not measured, or nothing predicted."""
    traceml: str
    problem: str = ""
    """Why there is no diagnosis."""


def main() -> None:
    arguments = _arguments()
    chosen = [
        planted
        for planted in SUITE
        if (arguments.recorded or _runs_here(planted))
        and planted.where == (arguments.where or planted.where)
        and planted.name in (arguments.only or [planted.name])
    ]
    rows: list[Row] = []
    print(HEADINGS)
    for planted in chosen:
        rows.append(row(planted, arguments))
        print(printed(rows[-1]), flush=True)
        _write(arguments.json, rows)
    print(f"\n{totals(rows)}\n{arguments.json}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--where", choices=["cpu", "gpu"], help="only what needs at least this")
    parser.add_argument("--record", type=Path, metavar="FOLDER", help="keep the studies there")
    parser.add_argument(
        "--recorded", type=Path, metavar="FOLDER", help="diagnose the studies there"
    )
    parser.add_argument("--pairs", type=int, default=3, help="of processes, for the true gain")
    parser.add_argument("--steps", type=int, default=60, help="measured in each of them")
    parser.add_argument("--gains", type=Path, metavar="FILE", help="where they were measured")
    parser.add_argument("--no-gains", action="store_true", help="leave out the true gains")
    parser.add_argument("--no-traceml", action="store_true")
    device = "gpu" if _has_gpu() else "cpu"
    parser.add_argument("--json", type=Path, default=RESULTS / f"diagnosis-{device}.json")
    return parser.parse_args()


def row(planted: Planted, arguments: argparse.Namespace) -> Row:
    if arguments.recorded is not None:
        kept = diagnosed_again(arguments.recorded / f"{planted.name}.json.gz")
        diagnosis, problem = json.loads(codec.encode(plain(kept))), ""
    else:
        (diagnosis, problem), _ = undisturbed(lambda: diagnosed(planted, arguments.record))
    first = next(iter(findings(diagnosis, remarks=not planted.wins_time)), None)
    earlier = _earlier(arguments.gains, planted)
    gain = earlier.true if earlier else None
    if planted.rule and not (arguments.no_gains or arguments.gains):
        gain = true_gain(planted, arguments.pairs, arguments.steps)
    words = earlier.traceml if earlier else ""
    if not arguments.no_traceml:
        words = traceml_verdict.verdict(planted, 150)
    predicted = float(first["gain"]) if first else None
    found = _word(first["rule"], first.get("cause", "")) if first else ""
    return Row(
        job=planted.name,
        expected=_word(planted.rule, planted.cause),
        found=found,
        right=not problem and found == _word(planted.rule, planted.cause),
        line_expected=planted.line,
        line_found=_points_at(first, planted),
        predicted=predicted,
        true=gain,
        within=_near(predicted, gain) if planted.wins_time else None,
        traceml=words,
        problem=problem,
    )


def _earlier(results: Path | None, planted: Planted) -> Row | None:
    if results is None:
        return None
    rows = [
        codec.decode(json.dumps(one).encode(), Row)
        for one in json.loads(results.read_bytes())["jobs"]
    ]
    return next((one for one in rows if one.job == planted.name), None)


def diagnosed(planted: Planted, kept_in: Path | None) -> tuple[dict[str, Any], str]:
    """What `hotloop profile` says, as anybody would ask it, or why it says nothing."""
    command = [sys.executable, "-m", "hotloop", "profile", "--json", str(planted.script)]
    with tempfile.TemporaryDirectory() as folder:
        command += planted.arguments
        done = subprocess.run(
            command, cwd=folder, env=environment(), capture_output=True, text=True, check=False
        )
        for study in Path(folder).glob(".hotloop/*/study.json"):
            if kept_in is not None:
                names = {str(FOLDER): "/jobs", folder: "/project"}
                keep(study, kept_in / f"{planted.name}.json.gz", names)
    if done.returncode:
        return {}, done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "it failed"
    found = json.loads(done.stdout).get("diagnosis")
    return (found, "") if found else ({}, "this hotloop has no diagnosis")


def findings(diagnosis: dict[str, Any], remarks: bool) -> list[dict[str, Any]]:
    """Best first. Mere remarks count where the planted thing costs memory rather than time."""
    found = [one for one in diagnosis.get("findings", []) if one["rule"] != "at_the_roof"]
    return [one for one in found if remarks or one.get("is_limit", True)]


def _near(predicted: float | None, gain: Gain | None) -> bool | None:
    if predicted is None or gain is None:
        return None
    return abs(predicted / gain.ratio - 1) <= CLOSE


def _word(rule: str, cause: str) -> str:
    return f"{rule}: {cause}" if cause and rule == "waiting_for_data" else rule


def _points_at(finding: dict[str, Any] | None, planted: Planted) -> bool | None:
    if finding is None or planted.line is None:
        return None
    places = [(Path(place["file"]).name, place["line"]) for place in finding.get("places", [])]
    return (planted.source.name, planted.line) in places


def _runs_here(planted: Planted) -> bool:
    return planted.where == "cpu" or _has_gpu()


def _has_gpu() -> bool:
    from hotloop import machine

    return bool(machine.describe().gpus)


HEADINGS = f"{'job':21} {'expected':33} {'found':33} line predicted  true gain             TraceML"


def printed(row: Row) -> str:
    line = {None: "-", True: "yes", False: "no"}[row.line_found]
    predicted = f"{row.predicted:.2f}×" if row.predicted else "-"
    gain = _told(row.true) if row.true else "-"
    found = row.found or (f"({row.problem})" if row.problem else "nothing")
    marks = f"{row.job:21} {row.expected or 'nothing':33} {found:33} {line:4} {predicted:>9}"
    return f"{marks}  {gain:21} {row.traceml}"


def _told(gain: Gain) -> str:
    low, high = gain.low, gain.high
    return f"{gain.ratio:.2f}×" + (f" [{low:.2f}, {high:.2f}]" if low and high else "")


def totals(rows: list[Row]) -> str:
    judged = [row.within for row in rows if row.within is not None]
    lines = [row.line_found for row in rows if row.line_found is not None]
    return (
        f"first finding right: {sum(row.right for row in rows)} of {len(rows)}; "
        f"its line among the places: {sum(lines)} of {len(lines)}; "
        f"predicted gain within ±{CLOSE:.0%}: {sum(judged)} of {len(judged)}"
    )


def _write(path: Path, rows: list[Row]) -> None:
    document = {"totals": totals(rows), "jobs": [asdict(row) for row in rows]}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
