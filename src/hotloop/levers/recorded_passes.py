"""A model's forward and backward pass recorded as CUDA graphs, kernel by kernel as they are.

torch captures the model, so that whatever Python decides on the way is checked at every call, and
differentiates what it captured. It would then generate code; here the operators of both passes
stay as they are and are recorded. That takes a second where a compiler takes minutes, and the
arithmetic is the job's own to the last bit.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any

from hotloop.levers.replaying import Recorder, Tally
from hotloop.levers.still_graphs import Boxed, StillGraphs


class RecordedPasses:
    """A backend for torch.compile."""

    def __init__(self, torch: Any, recorder: Recorder) -> None:
        self._torch = torch
        self._recorder = recorder
        self._passes: list[StillGraphs] = []
        self.__name__ = "hotloop"
        """For torch's own messages."""

    @property
    def tallies(self) -> list[Tally]:
        """Of every pass that was captured."""
        return [one.tally for one in self._passes]

    def let_go(self) -> None:
        for one in self._passes:
            one.let_go()

    def __call__(self, graph: Any, inputs: Sequence[Any], **options: Any) -> Callable[..., Any]:
        differentiated = importlib.import_module("torch._dynamo.backends.common").aot_autograd
        settings = importlib.import_module("torch._functorch.config")
        # Memory of the forward pass that the backward pass may use again would have it refuse to be
        # run twice, which a script may ask for.
        with settings.patch(donated_buffer=False):
            made: Callable[..., Any] = differentiated(
                fw_compiler=self._forward,
                bw_compiler=self._backward,
                inference_compiler=_plain,
                keep_inference_input_mutations=True,  # a norm's averages are updated by the graph
            )(graph, inputs)
        return made

    def _forward(self, graph: Any, inputs: Sequence[Any]) -> Boxed:
        """Weights and buffers lie still, by torch's own account. Results that the script is handed
        are copied: it may hold on to them for as long as it likes."""
        context = self._torch._guards.TracingContext.try_get()
        known = context.fw_metadata if context else None
        if known is None:
            return _plain(graph, inputs)
        still = known.static_input_indices or []
        return self._replaying(graph, inputs, still, known.num_forward_returns, may_copy=False)

    def _backward(self, graph: Any, inputs: Sequence[Any]) -> Boxed:
        """What the forward pass has kept lies where that pass was replayed."""
        names = [node.name for node in _placeholders(graph)]
        still = [index for index, name in enumerate(names) if "tangents" not in name]
        return self._replaying(graph, inputs, still, 0, may_copy=True)

    def _replaying(
        self, graph: Any, inputs: Sequence[Any], still: Sequence[int], handed: int, may_copy: bool
    ) -> Boxed:
        run = _plain(graph, inputs)
        made = StillGraphs(self._torch, self._recorder, run, still, handed, may_copy)
        made.tally.reason = _obstacle(self._torch, graph, still)
        self._passes.append(made)

        def boxed(given: list[Any]) -> Any:
            return made(given)

        boxed._boxed_call = True  # type: ignore[attr-defined]
        return boxed


def _plain(graph: Any, inputs: Sequence[Any]) -> Boxed:
    run = importlib.import_module("torch._dynamo.backends.debugging").boxed_nop
    made: Boxed = run(graph, inputs)
    return made


def _placeholders(graph: Any) -> list[Any]:
    return [node for node in graph.graph.nodes if node.op == "placeholder"]


def _obstacle(torch: Any, graph: Any, still: Sequence[int]) -> str:
    """Why a pass cannot be recorded, as far as its operators show; empty when it can."""
    values = [node.meta.get("val") for node in graph.graph.nodes]
    devices = {value.device for value in values if isinstance(value, torch.Tensor)}
    if len(devices) != 1:
        return "it is not computed on one device"
    given = _placeholders(graph)
    if not all(isinstance(node.meta.get("val"), torch.Tensor) for node in given):
        return "it is given numbers, which a recording would not follow"
    moving = {node for index, node in enumerate(given) if index not in {*still}}
    if any(moving & {*_written(node)} for node in graph.graph.nodes):
        return "it changes what it is given"
    return ""


def _written(node: Any) -> list[Any]:
    """The arguments that an operator writes to."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return []
    arguments = zip(schema.arguments, node.args, strict=False)
    found = [one for known, one in arguments if known.alias_info and known.alias_info.is_write]
    return [one for one in found if hasattr(one, "op")]
