"""What does `hotloop optimize` reach on scripts as people write them, unmodified?

    python benchmarks/speedups.py [NAME…] [--corpus FOLDER] [--seconds N] [--options='…']
        [--work FOLDER] [--results FOLDER]

Needs a GPU: the bars were set on an NVIDIA H200. `resnet`, `resnet-256`, `gpt2`, `unet` and `card`
are scripts under `jobs/`; `nanogpt`, `chargpt` and `mnist` are public ones, whose repositories
`nanoGPT`, `minGPT` and `examples` lie in `--corpus`; their data is made up. After `--seconds` a
search is stopped, as by Ctrl-C, and the same command goes on with it. Its study is kept, and the
exit status is 1 when a bar was not reached.
"""

from __future__ import annotations

import argparse
import random
import shlex
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from elsewhere import environment
from keeping import ROOT, keep

from hotloop import studies
from hotloop.study import Study

JOBS = ROOT / "benchmarks" / "jobs"


@dataclass(frozen=True)
class Script:
    name: str
    command: str
    bar: float | None
    """How many times as fast, at the least. None: it is held to what a search does not show."""
    repository: str = ""
    """In the corpus. Empty: it lies under `jobs/`."""
    folder: str = "."
    """Where in it the command is run."""
    prepare: Callable[[Path], None] = lambda folder: None
    """Makes up the data, given the repository's folder."""
    options: str = ""


def _tokens(folder: Path) -> None:
    draw = random.Random(0)
    data = folder / "data" / "made_up"
    data.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", 2_000_000), ("val", 200_000)):
        tokens = [draw.randrange(50257) for _ in range(count)]
        (data / f"{split}.bin").write_bytes(struct.pack(f"<{count}H", *tokens))


def _characters(folder: Path) -> None:
    draw = random.Random(0)
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 9))) for _ in range(3000)]
    ends = ["", "", "", ".", "\n"]
    text = " ".join(draw.choice(words) + draw.choice(ends) for _ in range(180_000))
    prompt = "O God, O God!\n"  # which the script goes on from, now and then
    place = folder / "projects" / "chargpt" / "input.txt"
    place.write_text(prompt + text, encoding="utf-8")


def _digits(folder: Path) -> None:
    """Pictures that a network can learn, in the files that torchvision would have fetched."""
    draw = random.Random(0)
    shapes, noise = ([draw.randbytes(784) for _ in range(count)] for count in (10, 50))
    drawn = [
        [bytes(one // 2 + other // 2 for one, other in zip(*both, strict=True)) for both in pairs]
        for pairs in ([(shape, one) for one in noise] for shape in shapes)
    ]
    raw = folder / "data" / "MNIST" / "raw"  # where mnist/main.py looks: ../data
    raw.mkdir(parents=True, exist_ok=True)
    for split, count in (("train", 60_000), ("t10k", 10_000)):
        labels = bytes(draw.randrange(10) for _ in range(count))
        pictures = b"".join(draw.choice(drawn[label]) for label in labels)
        head = struct.pack(">IIII", 2051, count, 28, 28)
        (raw / f"{split}-images-idx3-ubyte").write_bytes(head + pictures)
        head = struct.pack(">II", 2049, count)
        (raw / f"{split}-labels-idx1-ubyte").write_bytes(head + labels)


NANOGPT = (
    "train.py --dataset=made_up --dtype=float32 --compile=False --batch_size=12 --block_size=1024"
    " --gradient_accumulation_steps=1 --eval_interval=100000 --eval_iters=1 --max_iters=2000"
)
SCRIPTS = (
    Script("resnet", "resnet18.py --steps 100000", 2.7),
    Script("resnet-256", "resnet18.py --batch 256 --steps 100000", 3.3),
    Script("gpt2", "gpt2.py", 9.0),
    Script("unet", "unet3d.py --batch 1", 3.5),
    Script("unet-4", "unet3d.py", 3.5),
    # To be held to the same script where it fits: own_flags.py --flags="--gib 0" --at-least 0.77.
    Script("card", "small_card.py", None, options="--objective memory"),
    # To be held to its author's own best flags: see own_flags.py.
    Script("nanogpt", NANOGPT, None, "nanoGPT", prepare=_tokens),
    Script("chargpt", "chargpt.py", 3.5, "minGPT", "projects/chargpt", _characters),
    # To be held to 3× over all of its 14 epochs, one-off costs included: see whole_training.py.
    Script("mnist", "main.py", None, "examples", "mnist", _digits),
)


def main() -> None:
    arguments = _arguments()
    known = [one.name for one in SCRIPTS]
    if unknown := {*arguments.names} - {*known}:
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    chosen = [one for one in SCRIPTS if one.name in (arguments.names or known)]
    held = [_held(script, arguments) for script in chosen]
    sys.exit(0 if all(held) else 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="which; all, if none is named")
    parser.add_argument("--corpus", type=Path, default=Path("corpus"))
    parser.add_argument("--seconds", type=float, help="for each search")
    parser.add_argument("--options", default="", help="more of them, for `hotloop optimize`")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "speedups")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    return parser.parse_args()


def _held(script: Script, arguments: argparse.Namespace) -> bool:
    folder = arguments.work.resolve() / script.name
    if not folder.exists():
        _lay_out(script, folder, arguments.corpus)
    place = folder / script.folder
    _search(script, folder, arguments)
    found = sorted(place.glob(".hotloop/*/study.json"))
    if not found:
        print(f"{script.name}: there is no study", flush=True)
        return False
    study = studies.read(found[-1])
    said, reached = _reached(script, study)
    if study.found is not None and study.found.verdict:  # what was kept before stays until then
        record = arguments.results / f"optimize-{script.name}.study.json.gz"
        keep(found[-1], record, {str(folder): "/project"}, is_ours=not script.repository)
    judged = {None: "no bar", True: "held", False: "NOT HELD"}[reached]
    print(f"{script.name}: {said}: {judged}", flush=True)
    return reached is not False


def _lay_out(script: Script, folder: Path, corpus: Path) -> None:
    if not script.repository:
        folder.mkdir(parents=True)
        shutil.copy(JOBS / script.command.split()[0], folder)
        return
    source = corpus / script.repository
    if not source.is_dir():
        raise SystemExit(f"{source} is not there: clone {script.repository} into {corpus}")
    shutil.copytree(source, folder, ignore=shutil.ignore_patterns(".git"))
    script.prepare(folder)


def _search(script: Script, root: Path, arguments: argparse.Namespace) -> None:
    place = root / script.folder
    words = [sys.executable, "-m", "hotloop", "optimize", *shlex.split(script.options)]
    words += shlex.split(arguments.options)
    words += ["--resume"] if list(place.glob(".hotloop/*/study.json")) else []
    words += shlex.split(script.command)
    # Projects import a package from their root, which its author has installed.
    search = subprocess.Popen(words, cwd=place, env=environment(root))
    try:
        search.wait(arguments.seconds)
    except subprocess.TimeoutExpired:
        search.send_signal(signal.SIGINT)
        search.wait()


def _reached(script: Script, study: Study) -> tuple[str, bool | None]:
    """What came of it, and whether that is enough. None: there is no bar."""
    found = study.found
    if found is None or not found.verdict:
        return "not finished", False
    if found.plan is None:
        return found.verdict, False
    if found.rescue is not None or found.proof is None:
        return found.verdict, None
    gain = found.proof.comparison
    said = f"{gain.ratio:.2f}× [{gain.low:.2f}, {gain.high:.2f}]"
    if script.bar is None:
        return said, None
    return f"{said}, asked {script.bar:g}×", gain.ratio >= script.bar


if __name__ == "__main__":
    main()
