"""For every optimisation a job on which it wins, and one on which it is refused.

    python benchmarks/lever_examples.py [--on cpu|gpu] [--steps 20] [--out FILE] [LEVER…]

Each is a whole search with that optimisation alone: proven, compared, soaked. What it needs comes
along. The result is kept after every job; the same command goes on with what is missing. It exits
with 1 if one did not do what is said of it here.
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

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Example:
    lever: str
    wins: bool
    job: str
    """Script and arguments, or a module's."""
    where: str = "cpu"
    only: str = ""
    """With which others, where it cannot be alone."""
    options: str = ""

    @property
    def key(self) -> str:
        return f"{self.lever} {'wins' if self.wins else 'loses'}, {self.where}"


def _two(lever: str, wins: str, loses: str, where: str = "cpu", **more: str) -> tuple[Example, ...]:
    return Example(lever, True, wins, where, **more), Example(lever, False, loses, where, **more)


LANGUAGE, VISION = "benchmarks/jobs/language.py", "benchmarks/jobs/vision.py"
GPT2 = f"{LANGUAGE} --words 50304 --width 768 --heads 12 --context 512"
MOUNTED = "benchmarks/jobs/mounted.py"
RESNET = "benchmarks/jobs/resnet18.py"
ENLARGING = "benchmarks/jobs/enlarging.py"
AUGMENTED = "benchmarks/jobs/augmented.py:Augmented"
CONTROL = "benchmarks/planted/control_cpu.py"
TINY = "examples/tiny_microbatches.py:TinyMicrobatches"
GPT = "-m hotloop.workloads.gpt:TinyGpt width=64 layers=2 pool=16"
CHANGES = "--effect changes_training"
MEMORY = "--objective memory"

EXAMPLES = (
    *_two("loader_workers", "examples/image_cnn.py", f"{VISION} --size 8 --batch 4"),
    *_two("cache_dataset", f"{VISION} --effort 20", f"{VISION} --size 8 --batch 4"),
    *_two("stage_data", MOUNTED, f"{MOUNTED} --latency 0"),
    *_two("threads", "benchmarks/planted/many_threads.py", CONTROL),
    *_two(
        "channels_last",
        f"{VISION} --size 64 --batch 128 --channels 64 --depth 6",
        f"{VISION} --channels 3 --depth 1",
        where="gpu",
        only="bf16,compile",
    ),
    *_two("compile", f"{LANGUAGE} --context 256", CONTROL),
    *_two("compile_blocks", f"{LANGUAGE} --context 256 --layers 4", CONTROL),
    *_two(
        "fused_optimizer",
        f"{LANGUAGE} --layers 24 --width 8 --heads 2 --context 8 --batch 1",
        f"{VISION} --channels 64",
    ),
    *_two(
        "fused_attention",
        f"{LANGUAGE} --context 512 --batch 2",
        f"{LANGUAGE} --context 16 --batch 64",
        only="compile",
    ),
    *_two(
        "fused_upsampling",
        ENLARGING,
        f"{ENLARGING} --channels 128 --width 7 --size 8 --times 1 --batch 2",
        only="compile",
    ),
    *_two(
        "folded_pixels",
        f"{RESNET} --batch 256",
        f"{RESNET} --batch 4 --size 64",
        where="gpu",
        only="bf16,channels_last,compile",
    ),
    *_two("compile_loss", f"{LANGUAGE} --layers 1 --words 20000", f"{LANGUAGE} --words 64"),
    *_two(
        "unused_outputs",
        f"{LANGUAGE} --layers 1 --words 20000 --own-loss",
        f"{LANGUAGE} --words 64 --own-loss",
        only="compile",
    ),
    *_two(
        "batch_size",
        f"{TINY} batch_size=16 microbatch=0",
        f"{TINY} batch_size=65436 microbatch=0",
        options=CHANGES,
    ),
    *_two(
        "context_length",
        f"{GPT} context=1024 batch_size=2",
        f"{GPT} context=32 batch_size=32",
        options=CHANGES,
    ),
    *_two("microbatch", TINY, f"{TINY} microbatch=2048"),
    Example("chunked_loss", True, f"{LANGUAGE} --layers 1 --words 20000", options=MEMORY),
    Example("chunked_loss", False, f"{LANGUAGE} --layers 1 --words 20000"),
    Example("checkpoint_blocks", True, f"{LANGUAGE} --layers 8", options=MEMORY),
    Example("checkpoint_blocks", False, f"{LANGUAGE} --layers 8"),
    *_two(
        "tf32",
        f"{GPT2} --layers 4",
        f"{LANGUAGE} --batch 1 --context 32",
        where="gpu",
    ),
    *_two(
        "bf16",
        "benchmarks/planted/full_precision.py",
        f"{LANGUAGE} --batch 1 --context 32",
        where="gpu",
    ),
    *_two(
        "fp16",
        "benchmarks/planted/full_precision.py",
        f"{LANGUAGE} --batch 1 --context 32",
        where="gpu",
    ),
    *_two(
        "pin_memory",
        f"{VISION} --size 128 --channels 64 --batch 256 --workers 12",
        f"{VISION} --effort 20 --workers 4",
        where="gpu",
    ),
    *_two(
        "device_prefetch",
        f"{VISION} --size 128 --channels 64 --batch 256 --workers 12",
        f"{VISION} --effort 20 --workers 4",
        where="gpu",
    ),
    *_two(
        "cudnn_benchmark",
        f"{VISION} --size 224 --channels 64 --batch 64",
        f"{VISION} --size 8 --batch 4",
        where="gpu",
    ),
    *_two(
        "allocator",
        "benchmarks/planted/changing_sizes.py",
        "benchmarks/planted/control_gpu.py",
        where="gpu",
    ),
    *_two(
        "shape_padding",
        GPT2.replace("50304", "50257"),
        f"{LANGUAGE} --words 513 --width 768 --heads 12",
        where="gpu",
        only="compile,bf16",
    ),
    *_two(
        "fp8",
        f"{LANGUAGE} --words 64 --width 4096 --heads 32 --context 1024",
        f"{GPT2} --layers 4",
        where="gpu",
        only="compile,bf16",
    ),
    *_two(
        "sdpa_backend",
        f"{GPT2} --layers 4 --fused --lengths",
        f"{GPT2} --layers 4 --fused",
        where="gpu",
        only="bf16",
    ),
    *_two("step_graph", TINY, f"{TINY} batch_size=65436 hidden=4096 microbatch=0", where="gpu"),
    *_two(
        "update_graph",
        f"{LANGUAGE} --layers 24 --width 64 --heads 2 --batch 1",
        f"{VISION} --size 224 --channels 64 --batch 64",
        where="gpu",
        only="compile",  # beside passes that are not, an update is next to nothing
    ),
    *_two("gpu_augment", AUGMENTED, f"{AUGMENTED} blurs=0", where="gpu"),
    # Where it wins a machine has two NUMA nodes or more.
    Example("affinity", False, CONTROL),
)


def run(example: Example, steps: int) -> dict[str, Any]:
    words = shlex.split(example.job)
    only = ",".join(filter(None, (example.lever, example.only)))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "hotloop", "optimize", "--json", "--only", only]
        command += ["--steps", str(steps), *shlex.split(example.options)]
        command += words if words[0] == "-m" else [str(ROOT / words[0]), *words[1:]]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{example.key}: {done.stderr[-2000:]}")
    return _outcome(example, json.loads(done.stdout))


def _outcome(example: Example, told: dict[str, Any]) -> dict[str, Any]:
    plan = told["plan"] or {"levers": []}
    kept = [chosen["lever"] for chosen in plan["levers"]]
    refused = {one["lever"]: one for one in told["refused"]}
    reason = refused.get(example.lever, {})
    return {
        "job": example.job,
        "options": example.options,
        "kept": kept,
        "ratio": told["ratio"],
        "own": _own_gain(example.lever, told["ladder"] or []),
        "verdict": told["verdict"],
        "refused": reason.get("reason", ""),
        "tried": reason.get("tried", example.lever in kept),
        "as_said": (example.lever in kept) == example.wins,
    }


def _own_gain(lever: str, ladder: list[dict[str, Any]]) -> dict[str, float] | None:
    """What leaving it out of the plan costs."""
    gains = [rung["gain"] for rung in ladder if rung["lever"] == lever and rung["gain"]]
    return {key: gains[0][key] for key in ("ratio", "low", "high")} if gains else None


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--on", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("lever-examples.json"))
    parser.add_argument("levers", nargs="*", metavar="LEVER")
    given = parser.parse_args()
    known = {example.lever for example in EXAMPLES}
    if unknown := set(given.levers) - known:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    kept = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {}
    wanted = [one for one in EXAMPLES if one.where == given.on]
    for example in [one for one in wanted if not given.levers or one.lever in given.levers]:
        if example.key not in kept:
            kept[example.key] = run(example, given.steps)
            given.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        found = kept[example.key]
        mark = "as said" if found["as_said"] else "NOT AS SAID"
        ratio = f"{found['ratio']['ratio']:.2f}×" if found["ratio"] else ""
        print(f"{example.key}: {mark}: {ratio} {found['refused']}", flush=True)
    raise SystemExit(not all(found["as_said"] for found in kept.values()))


if __name__ == "__main__":
    main()
