"""The experiments that have a figure to reach on an H200, and whether they reach it.

    python benchmarks/lab.py [--only fusion,best] [--runs 2] [--out benchmarks/results]
    python benchmarks/lab.py --small --device cpu --out /tmp/lab     # does all of it work?

Each is `hotloop experiment NAME`, run by the same code. Its outcome is written to
lab-NAME-DEVICE.json, with a line for every bar. Every process that was measured is kept at once in
build/lab: a run that is cut off, by a limit on a lent machine say, goes on where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab_bars import FIGURES, Bar, bars

from hotloop import codec, installed, machine
from hotloop.cli import signals
from hotloop.experiments.base import Case, Experiment, Outcome, Run
from hotloop.experiments.lab import Asked, Lab
from hotloop.experiments.ladder import Ladder
from hotloop.experiments.registry import EXPERIMENTS
from hotloop.experiments.scaling import Scaling
from hotloop.trial.launch import ProcessLauncher
from hotloop.trial.order import Glimpse

HERE = Path(__file__).parent
KEPT = HERE.parent / "build" / "lab"


class LadderOf256(Ladder):
    larger = ()


class ScalingOf96(Scaling):
    volumes = (96,)


EXPERIMENT: dict[str, type[Experiment]] = {**EXPERIMENTS, "ladder-256": LadderOf256}
FULL: dict[str, dict[str, Any]] = {"ladder-256": {"batch_size": 256}, "best": {"exhaustive": True}}
SMALL: dict[str, dict[str, Any]] = {
    "ladder-256": {"batch_size": 16},
    "best": {"exhaustive": True, "precision": "float32"},
    "scaling": {"batch_size": 2},
}


@dataclass(frozen=True)
class Kept:
    """One process of a case: what it showed, or why it failed."""

    run: Run | None
    reason: str


class KeptLab(Lab):
    """What was measured before is not measured again."""

    keep: Path

    def once(self, case: Case) -> tuple[Run | None, str]:
        self._asked_for = getattr(self, "_asked_for", {})
        text = codec.encode((self.where, self.asked.steps, case))
        number = self._asked_for[text] = self._asked_for.get(text, 0) + 1
        path = self.keep / f"{hashlib.sha256(text).hexdigest()[:24]}-{number}.json"
        if path.is_file():
            known = codec.decode(path.read_bytes(), Kept)
            return known.run, known.reason
        run, reason = super().once(case)
        path.parent.mkdir(parents=True, exist_ok=True)
        codec.write(path, Kept(run, reason))
        return run, reason


def main() -> int:
    arguments = _arguments()
    device, where = _where(arguments.device)
    missed = 0
    for figure in arguments.only.split(","):
        outcome = _outcome(figure, device, where, arguments)
        found = bars(figure, outcome.data)
        path = arguments.out / f"lab-{figure}-{_slug(where)}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        codec.write(path, {"figure": figure, "bars": _told(found), "outcome": outcome})
        for one in found:
            missed += not one.held
            print(f"{figure:<11} {one.line}", flush=True)
    if arguments.small:
        print("Small jobs on this device: they show that all of it works, and nothing else.")
        return 0
    return 1 if missed else 0


def _outcome(figure: str, device: str, where: str, arguments: argparse.Namespace) -> Outcome:
    kind = EXPERIMENT[figure]
    if figure == "scaling" and not arguments.small:
        kind = ScalingOf96
    wanted = (SMALL if arguments.small else FULL).get(figure, {})
    asked = Asked(runs=arguments.runs, steps=arguments.steps, **wanted)
    with tempfile.TemporaryDirectory(prefix="hotloop-lab-") as folder, signals.noted() as received:
        lab = KeptLab(
            sys.executable,
            device,
            where,
            asked,
            Path(folder),
            ProcessLauncher(),
            signals.heeded(received, _unwatched),
            say=lambda text: print(f"            {text}", file=sys.stderr, flush=True),
            heed=lambda: signals.heed(received),
        )
        lab.keep = KEPT
        return kind().run(lab)


def _where(device: str | None) -> tuple[str, str]:
    gpus, build = machine.describe().gpus, installed.look(sys.executable)
    chosen = device or ("cuda" if gpus else "cpu")
    name = gpus[0].name if chosen == "cuda" and gpus else "CPU"
    return chosen, f"{name}, torch {build.torch}"


def _slug(where: str) -> str:
    name = where.partition(",")[0].lower().removeprefix("nvidia ")
    return name.replace(" ", "-")


def _told(found: list[Bar]) -> list[dict[str, Any]]:
    return [{**vars(one), "held": one.held, "line": one.line} for one in found]


def _unwatched(glimpse: Glimpse) -> None:
    """Nobody watches."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(FIGURES), help="some of these, by commas")
    parser.add_argument("--runs", type=int, default=2, help="processes a case")
    parser.add_argument("--steps", type=int, help="steps a process (default: enough)")
    parser.add_argument("--device", choices=("cpu", "cuda"))
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--small", action="store_true", help="few settings, and no verdict")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.only.split(",") if name not in FIGURES]
    if unknown:
        parser.error(f"there is no {unknown[0]}; there are {', '.join(FIGURES)}")
    return arguments


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("Stopped. The same command goes on from here.")
