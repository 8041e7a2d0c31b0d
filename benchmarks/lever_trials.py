"""Every optimisation that is about a GPU, on one: a trial of a job as it is, and one under it.

    python benchmarks/lever_trials.py [--steps 40] [--out FILE] [--keep FOLDER] [LEVER…]

One process each proves no gain: `lever_examples.py` does. But it shows that each takes effect on a
real GPU, by its receipt, and about what it does there. `--keep` keeps the studies of the second
trials, without the paths of this machine; those under `tests/recordings/levers` are read again by
the tests. It exits with 1 if one did not take effect.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elsewhere import environment
from keeping import ROOT, keep

from hotloop import plan, studies
from hotloop.figures import step_times
from hotloop.plan import LeverSetting, Plan
from hotloop.trial.trial import Trial

PLANTED, JOBS = "benchmarks/planted", "benchmarks/jobs"
GPT2 = f"{JOBS}/language.py --words 50304 --width 768 --heads 12 --context 512"
COPIED = f"{JOBS}/copied.py"
TINY = "examples/tiny_microbatches.py:TinyMicrobatches"


@dataclass(frozen=True)
class Asked:
    job: str
    beside: tuple[str, ...] = ()
    """What else is in the plan, before it: what it needs, or is about."""


TRIALS = {
    "tf32": Asked(f"{GPT2} --layers 4"),
    "bf16": Asked(f"{PLANTED}/full_precision.py"),
    "fp16": Asked(f"{PLANTED}/full_precision.py"),
    "fp8": Asked(
        f"{JOBS}/language.py --words 64 --width 4096 --heads 32 --context 1024",
        ("bf16", "compile"),
    ),
    "channels_last": Asked(f"{JOBS}/resnet18.py --batch 64", ("bf16",)),
    "cudnn_benchmark": Asked(f"{JOBS}/vision.py --size 224 --channels 64 --batch 64"),
    "pin_memory": Asked(COPIED),
    "device_prefetch": Asked(COPIED),
    "allocator": Asked(f"{PLANTED}/changing_sizes.py"),
    "fused_optimizer": Asked(f"{GPT2} --layers 12 --batch 1"),
    "sdpa_backend": Asked(f"{GPT2} --layers 4 --fused --lengths", ("bf16",)),
    "model_graph": Asked(f"{JOBS}/resnet18.py"),
    "compile": Asked(f"{GPT2} --layers 4"),
    "compile_blocks": Asked(f"{GPT2} --layers 12"),
    "fused_attention": Asked(f"{GPT2} --layers 4 --batch 16", ("bf16", "compile")),
    "fused_upsampling": Asked(
        f"{JOBS}/enlarging.py --size 128 --channels 64 --width 3", ("bf16", "compile")
    ),
    "folded_pixels": Asked(f"{JOBS}/resnet18.py --batch 256", ("bf16", "channels_last", "compile")),
    "compile_loss": Asked(f"{GPT2} --layers 2 --batch 16", ("bf16",)),
    "shape_padding": Asked(GPT2.replace("50304", "50257"), ("bf16", "compile")),
    "chunked_loss": Asked(f"{GPT2} --layers 2 --batch 16"),
    "checkpoint_blocks": Asked(f"{GPT2} --layers 12"),
    "step_graph": Asked(TINY),
    "update_graph": Asked(f"{JOBS}/language.py --layers 24 --width 64 --heads 2 --batch 1"),
    "unused_outputs": Asked(f"{GPT2} --layers 2 --batch 16 --own-loss", ("bf16", "compile")),
    "gpu_augment": Asked(f"{JOBS}/augmented.py:Augmented"),
}


def main() -> None:
    given = _arguments()
    if unknown := {*given.levers} - {*TRIALS}:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(TRIALS)}")
    kept = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {}
    for lever in given.levers or TRIALS:
        kept[lever] = found = _tried(lever, TRIALS[lever], given)
        given.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        print(_told(lever, found), flush=True)
    sys.exit(0 if all(found["applied"] for found in kept.values()) else 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("lever-trials.json"))
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("levers", nargs="*", metavar="LEVER")
    return parser.parse_args()


def _tried(lever: str, asked: Asked, given: argparse.Namespace) -> dict[str, Any]:
    record = given.keep / f"{lever}.json.gz" if given.keep else None
    before = _trial(asked, asked.beside, given.steps)
    after = _trial(asked, (*asked.beside, lever), given.steps, record)
    if before is None or after is None:
        return {"job": asked.job, "applied": False, "why": "a trial came to nothing"}
    receipt = next((one for one in after.receipts if one.lever == lever), None)
    if receipt is None:
        return {"job": asked.job, "applied": False, "why": f"{after.state}: {after.reason}"}
    return {
        "job": asked.job,
        "beside": asked.beside,
        "applied": receipt.applied,
        "why": receipt.reason,
        "evidence": receipt.evidence,
        "seconds_a_step": [_step(before), _step(after)],
        "peak_bytes": [_peak(before), _peak(after)],
    }


def _trial(
    asked: Asked, levers: tuple[str, ...], steps: int, record: Path | None = None
) -> Trial | None:
    words = shlex.split(asked.job)
    with tempfile.TemporaryDirectory() as folder:
        chosen = Plan(tuple(LeverSetting(lever, {}) for lever in levers))
        plan.save(chosen, file := Path(folder, "plan.json"))
        command = [sys.executable, "-m", "hotloop", "profile", "--no-look", "--plan", str(file)]
        command += ["--steps", str(steps), str(ROOT / words[0]), *words[1:]]
        done = subprocess.run(
            command, cwd=folder, env=environment(), capture_output=True, text=True, check=False
        )
        found = [*Path(folder).glob(".hotloop/*/study.json")]
        if done.returncode or not found:
            print("\n".join(done.stderr.strip().splitlines()[-3:]), flush=True)
        if not found:
            return None
        if record is not None:
            keep(found[0], record, {str(ROOT): "/project", folder: "/project"})
        return next(iter(studies.read(found[0]).trials), None)


def _step(trial: Trial) -> float | None:
    found = step_times(trial.measurement) if trial.measurement else None
    return found.step.mean if found else None


def _peak(trial: Trial) -> int | None:
    return trial.measurement.memory.peak if trial.measurement else None


def _told(lever: str, found: dict[str, Any]) -> str:
    if not found["applied"]:
        return f"{lever}: NOT APPLIED: {found['why']}"
    before, after = found["seconds_a_step"]
    if not before or not after:
        return f"{lever}: applied, not timed"
    return f"{lever}: {before * 1e3:.2f} → {after * 1e3:.2f} ms, {before / after:.2f}×"


if __name__ == "__main__":
    main()
