"""How long does a whole training take as it is, and under a plan, with everything that comes once?

    python benchmarks/whole_training.py --plan hotloop.json [--pairs 2] [--at-least 3] [--out FILE]
        -- SCRIPT ARGS…

The script is run to its end, from this folder, in fresh processes that alternate: by `python`, and
by `hotloop run --plan`. What is timed is the process, so starting, compiling, filling caches,
evaluation and saving all count; nothing that was compiled before is at hand. The exit status is 1
when the plan was not as many times as fast as `--at-least` says.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from hotloop.search.compare import Comparison, Pair, compare, failed


def main() -> None:
    arguments = _arguments()
    ways = [("plain", ()), ("planned", ("-m", "hotloop", "run", "--plan", str(arguments.plan)))]
    pairs: list[Pair] = []
    for number in range(1, arguments.pairs + 1):
        ordered = ways[:: 1 if number % 2 else -1]
        took = {name: _seconds([*way, *arguments.script]) for name, way in ordered}
        pairs.append(Pair(baseline=took["plain"], candidate=took["planned"]))
        told = f"as it is {took['plain']:.1f} s, under the plan {took['planned']:.1f} s"
        print(f"{number}  {told}", flush=True)
    found = compared(pairs)
    held = arguments.at_least is None or found.ratio >= arguments.at_least
    bar = "" if arguments.at_least is None else f", asked {arguments.at_least:g}×: {_word(held)}"
    print(f"the whole training: {found.ratio:.2f}× [{found.low:.2f}, {found.high:.2f}]{bar}")
    if arguments.out:
        result = {"script": arguments.script, "held": held, **asdict(found)}
        arguments.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    sys.exit(0 if held else 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plan", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=2)
    parser.add_argument("--at-least", type=float)
    parser.add_argument("--out", type=Path)
    parser.add_argument("script", nargs="+")
    return parser.parse_args()


def _seconds(words: list[str]) -> float:
    with tempfile.TemporaryDirectory() as caches:
        names = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")
        environment = {**os.environ, **{name: str(Path(caches, name)) for name in names}}
        began = time.perf_counter()
        command = [sys.executable, *words]
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
        return time.perf_counter() - began


def compared(pairs: list[Pair]) -> Comparison:
    """One pair has a ratio and no interval."""
    return compare(pairs, least_pairs=2) if len(pairs) > 1 else failed(pairs, "one pair alone")


def _word(held: bool) -> str:
    return "held" if held else "NOT HELD"


if __name__ == "__main__":
    main()
