"""Every operator of a few steps: how many a line queues, what they compute, what they move."""

from __future__ import annotations

import contextlib
import statistics
import sys
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from time import perf_counter_ns
from typing import Any

from hotloop.inspection import Attention, OperatorLine, Operators
from hotloop.runtime.look.attention import AttentionFinder
from hotloop.runtime.look.course import MemoryCourse
from hotloop.runtime.look.dispatching import every_operator
from hotloop.runtime.look.flops import Formulas, is_heavy
from hotloop.runtime.look.frames import Frames
from hotloop.runtime.look.uses import Uses
from hotloop.runtime.look.visits import Visits
from hotloop.runtime.patches import Patches
from hotloop.seams import Seams

MOST_LINES = 200
FUSED = "scaled_dot_product_attention"
TABLE = "embedding_dense_backward"
COPIES = ("_to_copy", "copy_")


@dataclass
class _Line:
    operators: int = 0
    ns: int = 0
    differentiated: int = 0
    elements: list[int] = field(default_factory=list)
    backward_ns: int = 0
    backward_operators: int = 0
    modules: set[int] = field(default_factory=set)
    recurrent: int = 0
    on_gpu: int = 0
    flops: float = 0.0
    bytes: float = 0.0
    copied: float = 0.0
    table: list[int] = field(default_factory=lambda: [0, 0])
    table_ns: int = 0


class OperatorProbe:
    """Between `begin` and `end` every operator passes here, below autograd."""

    def __init__(self, torch: Any, course: MemoryCourse | None = None) -> None:
        self._torch = torch
        self._course = course
        self._formulas = Formulas(torch)
        self._frames = Frames()
        self._attention = AttentionFinder()
        self._mode: Any = None
        self._phase = "forward"
        self._loading = self._stepping = False
        self._thread = threading.get_ident()
        self._attending = False
        self._patches = Patches()
        self._count = 0
        self._ns = 0
        self._bytes = 0.0
        self._flops: dict[str, float] = defaultdict(float)
        self._convolutions: dict[str, float] = defaultdict(float)
        self._by_name: Counter[str] = Counter()
        self._without_formula: Counter[str] = Counter()
        self._lines: dict[tuple[int | None, str], _Line] = defaultdict(_Line)
        self._line_of: dict[int, int | None] = {}
        """The line whose operator a backward node undoes, by the node's sequence number."""
        self._undoing: _Line | None = None
        self._undoing_key: tuple[int | None, str] = None, "forward"
        self._uses = Uses()
        self._visits = Visits(torch, self._frames)

    def attach(self, seams: Seams) -> None:
        seams.batch.before.append(lambda args, kwargs: self._load(True))
        seams.batch.after.append(lambda args, result, began: self._load(False))
        seams.step.before.append(lambda args, kwargs: self._step(True))
        seams.step.after.append(lambda args, result, began: self._step(False))
        # A closure's passes run inside the optimizer's step, and the update comes after them.
        seams.model.before.append(lambda args, kwargs: self._enter("forward"))
        seams.backward.after.append(lambda args, result, began: self._step(self._stepping))

    def begin(self) -> None:
        self._patches.replace(
            self._torch.nn.functional, FUSED, self._noted(getattr(self._torch.nn.functional, FUSED))
        )
        self._mode = every_operator(self._torch, self._see)
        self._mode.__enter__()

    def end(self, steps: int) -> Operators:
        self._mode.__exit__(None, None, None)
        self._patches.restore()
        return Operators(
            steps=steps,
            count=self._count,
            seconds=self._ns / 1e9,
            flops=dict(self._flops),
            convolution_flops=dict(self._convolutions),
            bytes=self._bytes,
            by_name=dict(self._by_name.most_common()),
            without_formula=dict(self._without_formula),
            lines=self._kept_lines(),
            attention=self._kept_attention(),
        )

    def _noted(self, fused: Any) -> Any:
        """What it runs is not written by hand, also where it has no kernel, as with dropout."""

        def attend(*args: Any, **kwargs: Any) -> Any:
            self._attending = True
            try:
                return fused(*args, **kwargs)
            finally:
                self._attending = False

        return attend

    def _load(self, is_loading: bool) -> None:
        if threading.get_ident() == self._thread:  # another may load ahead, beside the step
            self._loading = is_loading

    def _step(self, is_stepping: bool) -> None:
        self._stepping = is_stepping
        self._enter("optimizer" if is_stepping else "forward")

    def _enter(self, phase: str) -> None:
        self._phase = phase

    def _see(self, function: Any, args: Any, kwargs: Any) -> Any:
        packet = function._overloadpacket
        began = perf_counter_ns()
        result = function(*args, **kwargs)
        elapsed = perf_counter_ns() - began
        if not self._loading:
            # The step must go on, whatever kind of tensor it is that we know nothing of.
            with contextlib.suppress(Exception):
                self._note(function, packet, args, kwargs, result, elapsed)
        if self._course is not None:
            with contextlib.suppress(Exception):
                self._tell(self._course, args, kwargs, result)
        return result

    def _tell(self, course: MemoryCourse, args: Any, kwargs: Any, result: Any) -> None:
        """What it leaves in memory. A block that is computed again learns in the backward pass."""
        in_backward = self._torch._C._current_graph_task_id() >= 0
        phase = "data" if self._loading else "backward" if in_backward else self._phase
        learns = self._torch.is_grad_enabled() and any(
            one.requires_grad for one in _tensors(self._torch, (*args, *kwargs.values()))
        )
        course.see(_tensors(self._torch, (result,)), phase, learns)

    def _note(
        self, function: Any, packet: Any, args: Any, kwargs: Any, result: Any, ns: int
    ) -> None:
        name = packet.__name__
        inputs = _tensors(self._torch, (*args, *kwargs.values()))
        results = _tensors(self._torch, (result,))
        self._count += 1
        self._ns += ns
        self._by_name[name] += 1
        line = self._undone()
        if line is None:
            line = self._note_forward(name, inputs, results, ns, function._schema.is_mutable)
        else:
            line.backward_ns += ns
            line.backward_operators += 1
            self._uses.backward(self._undoing_key, inputs, results)
            if name == TABLE:  # (gradient of what was looked up, which rows, …)
                line.table[0] += results[0].numel()
                line.table[1] += min(inputs[0].numel(), results[0].numel())
                line.table_ns += ns
        if not name.startswith("empty") and not _is_view(function, inputs, results):
            moved = sum(one.nbytes for one in (*inputs, *results))
            self._bytes += moved
            line.bytes += moved
        if self._formulas.knows(packet):
            dtype = str(inputs[0].dtype).removeprefix("torch.") if inputs else "unknown"
            flops = self._formulas.of(packet, args, kwargs, result)
            self._flops[dtype] += flops
            line.flops += flops
            if "conv" in name:
                self._convolutions[dtype] += flops
        elif is_heavy(name) and not _is_view(function, inputs, results):
            self._without_formula[name] += 1

    def _note_forward(
        self, name: str, inputs: list[Any], results: list[Any], ns: int, writes: bool
    ) -> _Line:
        frame = sys._getframe(1)
        number = self._frames.line(frame)
        line = self._lines[number, self._phase]
        self._uses.forward((number, self._phase), name, inputs, results, writes)
        line.operators += 1
        line.ns += ns
        line.elements.append(results[0].numel() if results else 0)
        owner = self._visits.module(frame)
        self._visits.note((number, self._phase), frame, name)
        line.modules.add(id(owner) if owner is not None else 0)
        line.recurrent += isinstance(owner, self._torch.nn.RNNBase)
        if results and results[0].is_cuda:
            line.on_gpu += 1
            if name in COPIES and not inputs[-1].is_cuda:
                line.copied += results[0].nbytes
        learns = self._torch.is_grad_enabled() and any(one.requires_grad for one in inputs)
        if learns:
            # Its node was made just before it came here; if none was, the last is another's.
            node = self._torch._C._autograd._get_sequence_nr() - 1
            line.differentiated += node not in self._line_of
            self._line_of.setdefault(node, number)
        if self._phase == "forward" and not self._attending:
            self._attention.tell(name, inputs, results, ns / 1e9, number, frame, learns)
        return line

    def _undone(self) -> _Line | None:
        """The line whose operator is being undone; None outside a backward pass.

        Between two nodes autograd adds up gradients that meet. That is for the one which came last:
        a loop whose every turn hands on a gradient of a whole tensor spends its time there.
        """
        node = self._torch._C._current_autograd_node()
        if node is not None:
            self._undoing_key = self._line_of.get(node._sequence_nr()), "forward"
            self._undoing = self._lines[self._undoing_key]
        elif self._torch._C._current_graph_task_id() < 0:
            self._undoing = None
        return self._undoing

    def _kept_lines(self) -> list[OperatorLine]:
        read = self._uses.only_read()
        kept = [
            OperatorLine(
                place=self._frames.known[number],
                operators=line.operators,
                seconds=line.ns / 1e9,
                differentiated=line.differentiated,
                median_elements=int(statistics.median(line.elements or [0])),
                backward_seconds=line.backward_ns / 1e9,
                backward_operators=line.backward_operators,
                phase=phase,
                modules=max(len(line.modules), 1),
                recurrent=line.recurrent,
                on_gpu=line.on_gpu,
                flops=line.flops,
                bytes=line.bytes,
                copied=line.copied,
                only_read=(number, phase) in read,
                tables=(line.table[0], line.table[1], line.table_ns / 1e9),
                repeats=self._visits.repeats((number, phase)),
            )
            for (number, phase), line in self._lines.items()
            if number is not None
        ]
        return sorted(kept, key=lambda line: -line.operators)[:MOST_LINES]

    def _kept_attention(self) -> list[Attention]:
        by_line = defaultdict(list)
        for chain in self._attention.found:
            if chain.line is not None:
                by_line[chain.line].append(chain)
        return [
            Attention(
                place=self._frames.known[number],
                count=len(chains),
                queries=max(chain.queries for chain in chains),
                keys=max(chain.keys for chain in chains),
                seconds=sum(chain.seconds for chain in chains),
                elements=sum(chain.elements for chain in chains),
                tells_weights=all(chain.tells_weights for chain in chains),
                forgotten=sum(not chain.is_kept for chain in chains),
            )
            for number, chains in by_line.items()
        ]


def _is_view(function: Any, inputs: list[Any], results: list[Any]) -> bool:
    """Its result lies where an operand does, and nothing was written there."""
    if function._schema.is_mutable:
        return False
    places = {one.untyped_storage().data_ptr() for one in inputs}
    return any(one.untyped_storage().data_ptr() in places for one in results)


def _tensors(torch: Any, values: Any) -> list[Any]:
    found = []
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.layout is torch.strided:
                found.append(value)
        elif isinstance(value, list | tuple):
            found += _tensors(torch, value)
    return found
