"""The whole step as one CUDA graph: forward, backward, clipping, scaler and optimizer.

The CPU then queues one graph instead of hundreds of kernels. Only in a loop of ours: there what
belongs to a step is known, and so is where its inputs come from.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hotloop.levers.base import Effect, Expectation, Group, Lever, Receipt, Seen, refuse
from hotloop.levers.graphed_step import CudaRecorder, GraphedStep, Recorder
from hotloop.levers.saved_optimizer import save_as_plain

if TYPE_CHECKING:
    from hotloop.seams import Seams

SCALED = ("Adagrad", "Adam", "AdamW", "SGD")
"""Whose fused kernel takes the scaler's word itself: any other asks the GPU whether to step."""
WITH_TENSOR = ("Adam", "AdamW")
"""Which read their learning rate from the device, where a schedule can change it."""
QUEUEING = 0.5
"""Of the time of passes and updates that the GPU spends waiting for the CPU. Assumed."""


@dataclass
class StepGraph(Lever):
    name = "step_graph"
    summary = "the whole step as one CUDA graph, replayed"
    group = Group.GRAPH
    effect = Effect.SAME_MATH
    not_for_memory = "a recorded graph holds its memory between steps"
    hides_model = True

    warm_up: int = 4
    """Steps that run as they are before one is captured."""

    def __post_init__(self) -> None:
        self._torch: Any = None
        self._seams: Any = None
        self._step: GraphedStep | None = None
        self._reason = "the loop is the script's own"

    @classmethod
    def settings(cls, seen: Seen) -> list[dict[str, Any]]:
        return [{}]

    @classmethod
    def expected(cls, seen: Seen) -> Expectation:
        if seen.measurement.inventory.loop is None:
            return refuse("only of a loop of hotloop's own is it known what belongs to a step")
        if not seen.on_gpu:
            return refuse("CUDA graphs need a GPU")
        return Expectation(seen.share("forward", "backward", "optimizer") * QUEUEING)

    def problem(self) -> str:
        return "" if self.warm_up >= 1 else f"warm_up must be at least 1, not {self.warm_up}"

    def apply(self, torch: Any, seams: Seams) -> None:
        self._torch, self._seams = torch, seams
        seams.loop.after.append(self._begun)

    def receipt(self) -> Receipt:
        step = self._step
        if step is None or step.reason:
            return self.not_applied(step.reason if step else self._reason)
        if not step.replays:
            return self.not_applied("no step was captured")
        if step.others > step.replays:
            return self.not_applied("most batches have another shape than the one captured")
        return self.applied(replays=step.replays, other_shapes=step.others)

    def recorder(self, loop: Any) -> Recorder | None:
        """None where there is nothing to record."""
        return CudaRecorder(self._torch) if loop.device.type == "cuda" else None

    def _begun(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        loop = args[0]
        recorder = self.recorder(loop)
        self._reason = "CUDA graphs need a GPU" if recorder is None else self._prepare(loop)
        if recorder is None or self._reason:
            return
        self._step = GraphedStep(self._torch, loop, recorder, self._seams, self.warm_up)
        loop.compute = self._step

    def _prepare(self, loop: Any) -> str:
        """What the optimizer needs so that none of it happens on the CPU; or why it cannot be."""
        optimizer, kind = loop.optimizer, type(loop.optimizer).__name__
        groups = optimizer.param_groups
        if kind != "SGD" and not all("capturable" in group for group in groups):
            return f"the job's {kind} cannot be captured"
        if loop.schedule is not None and kind not in WITH_TENSOR:
            return f"the learning rate changes, which a captured {kind} does not notice"
        if loop.scaler is not None and kind not in SCALED:
            return f"the job's {kind} asks the GPU at every step whether gradients are finite"
        own = {name: groups[0].get(name) for name in ("capturable", "fused")}
        save_as_plain(self._torch, optimizer, own, ["lr"] if loop.schedule is not None else [])
        for group in groups:
            if "capturable" in group:
                group["capturable"] = True
            if loop.scaler is not None:
                group["fused"] = True
            if loop.schedule is not None:
                group["lr"] = self._torch.tensor(float(group["lr"]), device=loop.device)
        for state in optimizer.state.values():  # of a checkpoint, which counts them on the host
            if self._torch.is_tensor(state.get("step")):
                state["step"] = state["step"].to(loop.device)
        if loop.scaler is not None:
            optimizer.defaults["fused"] = True
            optimizer._step_supports_amp_scaling = True
        return ""
