"""For every optimisation a job on which it wins, and one on which it is refused.

    python benchmarks/lever_examples.py [--on cpu|gpu] [--steps 20] [--budget TIME] [--out FILE]
        [--keep FOLDER] [--within SECONDS] [LEVER…]

Each is a whole search with that optimisation, what it needs, and what else is said of it here:
proven, compared, soaked. Examples that ask for the same search share it, and each is judged by
what became of its own optimisation there. The results are kept after every search; the same
command goes on with what is missing, has failed, or was cut short by its budget. A machine that is
lent for a while does it in parts: after `--within` seconds no search is begun any more. `--keep`
keeps the searches' studies, without the paths of this machine, each named after the first example
that it was run for. It exits with 1 if one did not do what is said of it here, or is left.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elsewhere import environment
from keeping import ROOT, keep

from hotloop import units
from hotloop.levers.registry import LEVERS
from hotloop.optimization import OUT_OF_TIME
from hotloop.study import NO_TIME
from hotloop.workshop.refusals import NOT_EXAMINED

LAST_LINES = 10
"""Of what a search that fails has said: its error, and what led there."""
CUT_SHORT = (OUT_OF_TIME, NO_TIME, NOT_EXAMINED)
"""What is said where a budget ended before anything was known."""


@dataclass(frozen=True)
class Example:
    lever: str
    wins: bool
    job: str
    """Script and arguments, or a module's."""
    where: str = "cpu"
    only: str = ""
    """What else the search may try: what it cannot be without, or what it is shared with."""
    options: str = ""

    @property
    def key(self) -> str:
        return f"{self.lever} {'wins' if self.wins else 'loses'}, {self.where}"

    @property
    def names(self) -> str:
        """For --only, in the registry's order: equal sets are to make equal commands."""
        names = {self.lever, *filter(None, self.only.split(","))}
        return ",".join(sorted(names, key=[*LEVERS].index))


def _two(lever: str, wins: str, loses: str, where: str = "cpu", **more: str) -> tuple[Example, ...]:
    return Example(lever, True, wins, where, **more), Example(lever, False, loses, where, **more)


def _all_lose(job: str, only: str, where: str) -> tuple[Example, ...]:
    """In one search for all of them."""
    return tuple(Example(lever, False, job, where, only=only) for lever in only.split(","))


LANGUAGE, VISION = "benchmarks/jobs/language.py", "benchmarks/jobs/vision.py"
GPT2 = f"{LANGUAGE} --words 50304 --width 768 --heads 12 --context 512"
MOUNTED = "benchmarks/jobs/mounted.py"
COPIED = f"{VISION} --size 128 --channels 64 --batch 256 --workers 12"
RESNET = "benchmarks/jobs/resnet18.py"
ENLARGING = "benchmarks/jobs/enlarging.py"
AUGMENTED = "benchmarks/jobs/augmented.py:Augmented"
CONTROL = "benchmarks/planted/control_cpu.py"
WELL_TUNED = "benchmarks/planted/control_gpu.py"
"""It has what most optimisations for a GPU would bring. On other jobs a search for one that loses
would go on to prove what it needs beside it."""
TINY = "examples/tiny_microbatches.py:TinyMicrobatches"
GPT = "-m hotloop.workloads.gpt:TinyGpt width=64 layers=2 pool=16"
CHANGES = "--effect changes_training"
MEMORY = "--objective memory"

EXAMPLES = (
    # First, since it decides nine of them: time on a lent machine may end.
    *_all_lose(
        WELL_TUNED,
        "tf32,bf16,fp16,channels_last,allocator,folded_pixels,fp8,shape_padding,update_graph",
        where="gpu",
    ),
    *_two("loader_workers", "examples/image_cnn.py", f"{VISION} --size 8 --batch 4"),
    *_two("cache_dataset", f"{VISION} --effort 20", f"{VISION} --size 8 --batch 4"),
    *_two("stage_data", MOUNTED, f"{MOUNTED} --latency 0"),
    *_two("threads", "benchmarks/planted/many_threads.py", CONTROL),
    Example(
        "channels_last",
        True,
        f"{VISION} --size 64 --batch 128 --channels 64 --depth 6",
        where="gpu",
        only="bf16,compile",
    ),
    *_two("model_graph", RESNET, f"{RESNET} --batch 256", where="gpu"),
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
    Example(
        "folded_pixels",
        True,
        f"{RESNET} --batch 256",
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
    Example("tf32", True, f"{GPT2} --layers 4", where="gpu"),
    Example("bf16", True, "benchmarks/planted/full_precision.py", where="gpu"),
    Example("fp16", True, "benchmarks/planted/full_precision.py", where="gpu"),
    Example("pin_memory", True, COPIED, where="gpu"),
    Example("device_prefetch", True, COPIED, where="gpu"),
    *_all_lose(f"{VISION} --effort 20 --workers 4", "pin_memory,device_prefetch", where="gpu"),
    *_two(
        "cudnn_benchmark",
        f"{VISION} --size 224 --channels 64 --batch 64",
        f"{VISION} --size 8 --batch 4",
        where="gpu",
    ),
    Example("allocator", True, "benchmarks/planted/changing_sizes.py", where="gpu"),
    Example(
        "shape_padding",
        True,
        GPT2.replace("50304", "50257"),
        where="gpu",
        only="compile,bf16",
    ),
    Example(
        "fp8",
        True,
        f"{LANGUAGE} --words 64 --width 4096 --heads 32 --context 1024",
        where="gpu",
        only="compile,bf16",
    ),
    Example("sdpa_backend", True, f"{GPT2} --layers 4 --fused --lengths", where="gpu", only="bf16"),
    Example("sdpa_backend", False, f"{GPT2} --layers 4 --fused", where="gpu"),
    *_two("step_graph", TINY, f"{TINY} batch_size=65436 hidden=4096 microbatch=0", where="gpu"),
    Example(
        "update_graph",
        True,
        f"{LANGUAGE} --layers 24 --width 64 --heads 2 --batch 1",
        where="gpu",
        only="compile",  # beside passes that are not, an update is next to nothing
    ),
    *_two("gpu_augment", AUGMENTED, f"{AUGMENTED} blurs=0", where="gpu"),
    # Where it wins a machine has two NUMA nodes or more.
    Example("affinity", False, CONTROL),
)


def command_of(example: Example, steps: int, budget: str = "") -> tuple[str, ...]:
    words = shlex.split(example.job)
    command = [sys.executable, "-m", "hotloop", "optimize", "--json", "--only", example.names]
    command += ["--steps", str(steps), *(("--budget", budget) if budget else ())]
    command += shlex.split(example.options)
    command += words if words[0] == "-m" else [str(ROOT / words[0]), *words[1:]]
    return tuple(command)


def execute(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """The slow part, which tests replace."""
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, check=False
    )


def search(command: Sequence[str], record: Path | None) -> dict[str, Any]:
    """What it came to, or its error. `record`: where its study is kept, also that of a failure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()  # as the study calls it
        done = execute(command, folder)
        studies = sorted(folder.glob(".hotloop/*/study.json"))
        if record is not None and studies:
            keep(studies[-1], record, {str(folder): "/project"}, is_ours=True)
    if done.returncode:
        said = "\n".join(done.stderr.strip().splitlines()[-LAST_LINES:])
        return {"error": said or f"exit status {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _outcome(example: Example, told: dict[str, Any]) -> dict[str, Any]:
    if "error" in told:
        return {"as_said": False, "error": told["error"]}
    plan = told["plan"] or {"levers": []}
    kept = [chosen["lever"] for chosen in plan["levers"]]
    refused = {one["lever"]: one for one in told["refused"]}
    reason = refused.get(example.lever, {})
    return {
        "job": example.job,
        "options": example.options,
        "only": example.names,
        "kept": kept,
        "ratio": told["ratio"],
        "own": _own_gain(example.lever, told["ladder"] or []),
        "verdict": told["verdict"],
        "refused": reason.get("reason", ""),
        "tried": reason.get("tried", example.lever in kept),
        "as_said": example.lever in kept if example.wins else _is_refused(reason),
    }


def _is_refused(told: dict[str, Any]) -> bool:
    """One that a budget left no time for was not: nothing speaks against it."""
    return bool(told) and told["reason"] not in (NO_TIME, NOT_EXAMINED)


def _own_gain(lever: str, ladder: list[dict[str, Any]]) -> dict[str, float] | None:
    """What leaving it out of the plan costs."""
    gains = [rung["gain"] for rung in ladder if rung["lever"] == lever and rung["gain"]]
    return {key: gains[0][key] for key in ("ratio", "low", "high")} if gains else None


def main() -> None:
    given = _arguments()
    known = {example.lever for example in EXAMPLES}
    if unknown := set(given.levers) - known:
        raise SystemExit(f"unknown: {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    kept = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {}
    wanted = [one for one in EXAMPLES if one.where == given.on]
    wanted = [one for one in wanted if not given.levers or one.lever in given.levers]
    began, left = time.monotonic(), 0
    for command, examples in _by_command(wanted, given).items():
        missing = [one for one in examples if not _is_known(one, kept)]
        if missing and time.monotonic() - began > given.within:
            left += 1
            continue
        if missing:
            kept |= _judged(command, missing, given.keep)
            given.out.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        for example in examples:
            print(_told(example, kept[example.key]), flush=True)
    if left:
        print(f"left for another time: {left} searches", flush=True)
    raise SystemExit(left > 0 or not all(found["as_said"] for found in kept.values()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--on", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--budget", default="", metavar="TIME", help="for each search")
    parser.add_argument("--out", type=Path, default=Path("lever-examples.json"))
    parser.add_argument("--keep", type=Path, metavar="FOLDER")
    parser.add_argument("--within", type=float, default=math.inf, metavar="SECONDS")
    parser.add_argument("levers", nargs="*", metavar="LEVER")
    return parser.parse_args()


def _is_known(example: Example, kept: dict[str, dict[str, Any]]) -> bool:
    """What was kept of an example that was another one then says nothing of this."""
    known = kept.get(example.key)
    if known is None or "error" in known or _was_cut_short(known):
        return False
    asked = (known["job"], known["options"], known.get("only", example.names))
    return asked == (example.job, example.options, example.names)


def _was_cut_short(known: dict[str, Any]) -> bool:
    """With more time it may be as said, or not; what was tried to the end is not tried again."""
    return not known["as_said"] and (known["verdict"] in CUT_SHORT or known["refused"] in CUT_SHORT)


def _by_command(
    examples: Iterable[Example], given: argparse.Namespace
) -> dict[tuple[str, ...], list[Example]]:
    found: dict[tuple[str, ...], list[Example]] = {}
    for example in examples:
        found.setdefault(command_of(example, given.steps, given.budget), []).append(example)
    return found


def _judged(
    command: Sequence[str], examples: Sequence[Example], folder: Path | None
) -> dict[str, dict[str, Any]]:
    """Each of the examples, by one search."""
    first = examples[0]
    name = first.key.replace(",", "").replace(" ", "-")
    began = time.monotonic()
    told = search(command, folder / f"{name}.study.json.gz" if folder else None)
    took = units.seconds(time.monotonic() - began)
    print(f"searched {first.job} for {first.names}: {took}", flush=True)
    return {example.key: _outcome(example, told) for example in examples}


def _told(example: Example, found: dict[str, Any]) -> str:
    if "error" in found:
        return f"{example.key}: FAILED: {found['error']}"
    mark = "as said" if found["as_said"] else "NOT AS SAID"
    ratio = f"{found['ratio']['ratio']:.2f}×" if found["ratio"] else ""
    own = f"({found['own']['ratio']:.2f}× its own)" if found["own"] else ""
    return " ".join(filter(None, (f"{example.key}: {mark}:", ratio, own, found["refused"])))


if __name__ == "__main__":
    main()
