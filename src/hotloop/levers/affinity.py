"""The job's process runs on the cores of one NUMA node: the GPU's, or any one for a job on a CPU.

What a core reads from another node's memory, or sends to a GPU there, goes through a link between
the two. Workers are started by the process and stay on its cores; so do the threads it has already.
Never on fewer cores than the workers and the job itself need: then all is put back.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop import topology
from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, counted, refuse

if TYPE_CHECKING:
    from hotloop.seams import Seams

ON_GPU = 0.3
"""Of the time that data and copies take: what the way to the other node can cost. Assumed."""
ON_CPU = 0.15
"""Of the computing. Only a trial can tell: half of the cores may be worth more."""


@dataclass
class Affinity(Lever):
    name = "affinity"
    summary = "the job on the cores of one NUMA node, the GPU's where it has one"
    group = Group.PROCESS
    effect = Effect.SAME_MATH
    not_for_memory = "memory lies on another node then, and is as much"

    node: int = -1
    """-1: the GPU's, or the one with the most cores."""

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._before: frozenset[int] = frozenset()
        self._cores: frozenset[int] = frozenset()
        self._bound = -1
        self._threads: tuple[int, int] | None = None
        self._steps = 0
        self._reason = ""

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        workers = seen.loader.workers if seen.loader else 0
        if seen.nodes < 2:
            return refuse("the cores that the job may use lie on one NUMA node")
        if seen.cores // seen.nodes < workers + 1:
            return refuse(
                f"a NUMA node has too few cores for {counted(workers, 'worker')} and the job"
            )
        if seen.on_gpu:
            return Expectation(seen.share("data", "copy") * ON_GPU)
        return Expectation(seen.share("forward", "backward", "optimizer") * ON_CPU)

    def problem(self) -> str:
        return "" if self.node >= -1 else f"there is no node {self.node}"

    def apply(self, torch: Any, seams: Seams) -> None:
        """Before CUDA starts, and before any worker does: their memory lies where they run."""
        self._torch = torch
        self._before, nodes = topology.allowed(), topology.nodes()
        self._bound, self._reason = _chosen(self.node, nodes, torch)
        if self._reason:
            return
        self._cores = nodes[self._bound]
        _bind(self._cores)
        self._limit_threads()
        seams.loader_built.after.append(self._make_room)
        seams.step.after.append(self._look)

    def receipt(self) -> Receipt:
        if self._reason:
            return self.not_applied(self._reason)
        if not self._steps:
            return self.not_applied("no optimizer stepped")
        on = gpu_node(self._torch)
        if on is not None and self.node == -1 and on != self._bound:
            return self.not_applied(f"the GPU that it uses is on node {on}, not {self._bound}")
        return self.applied(node=self._bound, cores=len(self._cores), before=len(self._before))

    def _limit_threads(self) -> None:
        """torch has counted the cores already, and a script that sets the number does so later."""
        has, most = self._torch.get_num_threads(), len(self._cores)
        if has > most:
            self._threads = has, most
            self._torch.set_num_threads(most)

    def _make_room(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        workers = getattr(args[0], "num_workers", 0)
        if self._reason or workers + 1 <= len(self._cores):
            return
        _bind(self._before)
        if self._threads and self._torch.get_num_threads() == self._threads[1]:
            self._torch.set_num_threads(self._threads[0])
        have, wanted = counted(len(self._cores), "core"), counted(workers, "worker")
        self._reason = f"node {self._bound} has {have}, too few for {wanted}"

    def _look(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._steps += 1
        if not self._reason and topology.allowed() != self._cores:
            self._reason = "the script has chosen its cores itself"


def _chosen(wanted: int, nodes: dict[int, frozenset[int]], torch: Any) -> tuple[int, str]:
    """The node to bind to, or the reason not to."""
    if not nodes:
        return -1, "the system does not tell of its NUMA nodes"
    if len(nodes) == 1:
        return -1, "the cores that the job may use lie on one NUMA node"
    if wanted != -1:
        known = ", ".join(map(str, nodes))
        return wanted, "" if wanted in nodes else f"there is no node {wanted}, only {known}"
    gpus = topology.gpu_nodes() if torch.cuda.device_count() else {}
    if not gpus:
        return max(nodes, key=lambda node: len(nodes[node])), ""
    node = gpus[_first_visible(sorted(gpus))]
    return node, "" if node in nodes else "the machine does not say which node its GPU hangs on"


def _first_visible(addresses: list[str]) -> str:
    """CUDA counts GPUs of a kind in the order of their addresses; the receipt looks again."""
    first = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
    number = int(first) if first.isdigit() else 0
    return addresses[min(number, len(addresses) - 1)]


def gpu_node(torch: Any) -> int | None:
    """Of the GPU that the job uses. None: it uses none, or this torch does not know its address."""
    if not torch.cuda.is_initialized():
        return None
    gpu = torch.cuda.get_device_properties(torch.cuda.current_device())
    if not hasattr(gpu, "pci_bus_id"):
        return None
    address = f"{gpu.pci_domain_id:04x}:{gpu.pci_bus_id:02x}:{gpu.pci_device_id:02x}.0"
    return topology.node_of(address)


def _bind(cores: frozenset[int]) -> None:
    """Every thread there is: numpy's and torch's may have been started before."""
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            os.sched_setaffinity(int(thread), cores)
