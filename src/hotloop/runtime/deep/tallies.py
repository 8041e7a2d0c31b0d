"""From what torch's profiler recorded to rows: operators by their shapes, and modules.

A module's backward pass runs far from it, on a thread of its own on a GPU. Autograd numbers its
nodes, and the profiler notes the number both where a node was made and where it was run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hotloop.depth import ModuleRow, OperatorRow
from hotloop.runtime.deep import modules, phases

NODE = "autograd::engine::evaluate_function"
NO_OPERATORS = (modules.PREFIX, phases.PREFIX, "ProfilerStep")


@dataclass
class _Sum:
    calls: int = 0
    own: float = 0.0
    total: float = 0.0
    gpu_own: float = 0.0
    gpu_total: float = 0.0


@dataclass
class _Module:
    calls: int = 0
    forward: float = 0.0
    backward: float = 0.0
    own: float = 0.0
    gpu_forward: float = 0.0
    gpu_backward: float = 0.0
    gpu_own: float = 0.0


@dataclass
class Tally:
    """`see_gpu`: whether times of 0 on the GPU mean that nothing ran there."""

    see_gpu: bool
    _gpu: dict[int, float] = field(default_factory=dict)
    _operators: dict[tuple[str, str], _Sum] = field(default_factory=lambda: defaultdict(_Sum))
    _modules: dict[str, _Module] = field(default_factory=lambda: defaultdict(_Module))
    _made_in: dict[tuple[int, int], tuple[str, ...]] = field(default_factory=dict)
    """The modules inside which an autograd node was made, by its thread and number."""
    _nodes: list[Any] = field(default_factory=list)

    def add(self, events: Iterable[Any]) -> None:
        """All of one recording: `torch.autograd.profiler_util.FunctionEvent`s."""
        outermost = [event for event in events if _on_cpu(event) and event.cpu_parent is None]
        for event in sorted(outermost, key=lambda event: event.time_range.start):
            self._walk(event)
        for node in self._nodes:
            self._give_to_modules(node)

    def operators(self) -> list[OperatorRow]:
        rows = [
            OperatorRow(
                name,
                shapes,
                sums.calls,
                sums.own / 1e6,
                sums.total / 1e6,
                self._if_seen(sums.gpu_own),
                self._if_seen(sums.gpu_total),
            )
            for (name, shapes), sums in self._operators.items()
        ]
        return sorted(rows, key=lambda row: (-(row.gpu_own or 0.0), -row.cpu_own))

    def modules(self) -> list[ModuleRow]:
        """In the order in which they were first called."""
        rows = []
        for name, sums in self._modules.items():
            path, _, kind = name.removeprefix(modules.PREFIX).rpartition(" ")
            rows.append(
                ModuleRow(
                    path=path,
                    kind=kind.strip("()"),
                    calls=sums.calls,
                    forward_cpu=sums.forward / 1e6,
                    backward_cpu=sums.backward / 1e6,
                    own_cpu=sums.own / 1e6,
                    forward_gpu=self._if_seen(sums.gpu_forward),
                    backward_gpu=self._if_seen(sums.gpu_backward),
                    own_gpu=self._if_seen(sums.gpu_own),
                )
            )
        return rows

    def _walk(self, outermost: Any) -> None:
        """Without recursion: a deep model may nest deeper than Python allows."""
        waiting: list[tuple[Any, tuple[str, ...], bool]] = [(outermost, (), False)]
        while waiting:
            event, inside, backward = waiting.pop()
            if event.name.startswith(NODE):
                self._nodes.append(event)
                backward = True
            elif event.name.startswith(modules.PREFIX):
                inside = (*inside, event.name)
                self._add_forward(event, inside)
            if not event.name.startswith(NO_OPERATORS):
                self._add_operator(event)
            if event.sequence_nr >= 0 and not backward:
                # An operator that makes no node has the number of the next that does.
                self._made_in[event.thread, event.sequence_nr] = inside
            children = [child for child in event.cpu_children if _on_cpu(child)]
            waiting += [(child, inside, backward) for child in reversed(children)]

    def _add_operator(self, event: Any) -> None:
        sums = self._operators[event.name, _shapes(event.input_shapes)]
        sums.calls += 1
        sums.own += event.self_cpu_time_total
        sums.total += event.cpu_time_total
        sums.gpu_own += _own_gpu(event)
        sums.gpu_total += self._gpu_of(event)

    def _add_forward(self, event: Any, inside: tuple[str, ...]) -> None:
        sums, cpu, gpu = self._modules[event.name], event.cpu_time_total, self._gpu_of(event)
        sums.calls += 1
        sums.own += cpu
        sums.gpu_own += gpu
        if event.name not in inside[:-1]:  # of one that calls itself the outermost counts
            sums.forward += cpu
            sums.gpu_forward += gpu
        for outer in inside[-2:-1]:
            self._modules[outer].own -= cpu
            self._modules[outer].gpu_own -= gpu

    def _give_to_modules(self, node: Any) -> None:
        inside = self._made_in.get((node.fwd_thread, node.sequence_nr), ())
        cpu, gpu = node.cpu_time_total, self._gpu_of(node)
        for name in set(inside):
            self._modules[name].backward += cpu
            self._modules[name].gpu_backward += gpu
        for name in inside[-1:]:
            self._modules[name].own += cpu
            self._modules[name].gpu_own += gpu

    def _gpu_of(self, event: Any) -> float:
        """Of its kernels and those of everything inside it, in microseconds."""
        known = self._gpu.get(id(event))
        if known is not None:
            return known
        inner = [event]
        for one in inner:
            inner += one.cpu_children
        for one in reversed(inner):
            below = sum(self._gpu[id(child)] for child in one.cpu_children)
            self._gpu[id(one)] = _own_gpu(one) + below
        return self._gpu[id(event)]

    def _if_seen(self, microseconds: float) -> float | None:
        return microseconds / 1e6 if self.see_gpu else None


def ran_kernels(events: Iterable[Any]) -> bool:
    return any(_own_gpu(event) for event in events if _on_cpu(event))


def _own_gpu(event: Any) -> float:
    """A named range is shown on the GPU too, as if it were a kernel of that name."""
    return float(sum(kernel.duration for kernel in event.kernels if kernel.name != event.name))


def _on_cpu(event: Any) -> bool:
    return "CPU" in str(event.device_type) and not event.is_async


def _shapes(shapes: Any) -> str:
    """Scalars and lists have none."""
    return " ".join(str(list(shape)) for shape in shapes or () if shape)
