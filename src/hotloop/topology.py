"""How the machine's cores are laid out, as Linux tells it under /sys: in pairs, and in NUMA nodes.

Memory and GPUs hang on one node each, and are farther from the cores of the others. Both the parent
and the job's process ask here, so this file needs nothing but the standard library.
"""

from __future__ import annotations

import os
from pathlib import Path

SYSTEM = Path("/sys/devices/system")
PCI = Path("/sys/bus/pci/devices")
NVIDIA = "0x10de"
DISPLAY = "0x03"
"""How the class of a PCI device begins that computes or draws; a GPU's sound has another."""


def allowed() -> frozenset[int]:
    """The cores this process may run on. Empty where the system does not say."""
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


def nodes(system: Path = SYSTEM) -> dict[int, frozenset[int]]:
    """The NUMA nodes by number, each with those of its cores that this process may run on."""
    mine = allowed()
    found = {}
    for folder in sorted((system / "node").glob("node[0-9]*")):
        cores = numbers(_text(folder / "cpulist")) & mine
        if cores:
            found[int(folder.name.removeprefix("node"))] = cores
    return found


def physical_cores(system: Path = SYSTEM) -> int | None:
    """Of those allowed: two of them may share all that computes. None where it is not known."""
    cores = [_text(system / f"cpu/cpu{core}/topology/thread_siblings_list") for core in allowed()]
    return len(set(cores)) if cores and all(cores) else None


def gpu_nodes(pci: Path = PCI) -> dict[str, int]:
    """The node that each NVIDIA GPU hangs on, by its address; -1 where the machine does not say."""
    return {
        folder.name: node_of(folder.name, pci)
        for folder in sorted(pci.glob("*"))
        if _text(folder / "vendor") == NVIDIA and _text(folder / "class").startswith(DISPLAY)
    }


def node_of(address: str, pci: Path = PCI) -> int:
    text = _text(pci / address / "numa_node")
    return int(text) if text.removeprefix("-").isdigit() else -1


def numbers(text: str) -> frozenset[int]:
    """Of a list as the kernel writes it: "0-3,8"."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.strip().isdigit():
            found.update(range(int(first), int(last or first) + 1))
    return frozenset(found)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return ""
