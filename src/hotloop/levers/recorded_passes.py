"""A model's forward and backward pass recorded as CUDA graphs, kernel by kernel as they are.

torch captures the model, so that whatever Python decides on the way is checked at every call, and
differentiates what it captured. It would then generate code; here the operators of both passes
stay as they are and are recorded. That takes a second where a compiler takes minutes, and every
operator computes as it does in the job.
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
        self.why_not = ""
        """Why nothing was recorded at all."""
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
        """Another way through the model, or a part of it. What was recorded of others would keep
        its memory, and may never be asked for again."""
        for one in self._passes:
            one.forget()
        differentiated = importlib.import_module("torch._dynamo.backends.common").aot_autograd
        settings = importlib.import_module("torch._functorch.config")
        # Memory of the forward pass that the backward pass may use again would have it refuse to be
        # run twice, which a script may ask for.
        with settings.patch(donated_buffer=False):
            made: Callable[..., Any] = differentiated(
                fw_compiler=self._forward,
                bw_compiler=self._backward,
                inference_compiler=self._unlearned,
                keep_inference_input_mutations=True,  # a norm's averages are updated by the graph
            )(graph, inputs)
        return made

    def _unlearned(self, graph: Any, inputs: Sequence[Any]) -> Boxed:
        self.why_not = "nothing of the model is learned"
        return _plain(graph, inputs)

    def _forward(self, graph: Any, inputs: Sequence[Any]) -> Boxed:
        """Weights and buffers lie still, by torch's own account."""
        context = self._torch._guards.TracingContext.try_get()
        known = context.fw_metadata if context else None
        if known is None:
            self.why_not = "torch does not say what of it lies still"
            return _plain(graph, inputs)
        still = known.static_input_indices or []
        return self._replaying(graph, inputs, still, known.num_forward_returns)

    def _backward(self, graph: Any, inputs: Sequence[Any]) -> Boxed:
        """What the forward pass has kept lies where that pass was replayed."""
        names = [node.name for node in _placeholders(graph)]
        still = [index for index, name in enumerate(names) if "tangents" not in name]
        return self._replaying(graph, inputs, still, handed=None)

    def _replaying(
        self, graph: Any, inputs: Sequence[Any], still: Sequence[int], handed: int | None
    ) -> Boxed:
        made = StillGraphs(self._torch, self._recorder, _plain(graph, inputs), still, handed)
        made.tally.reason = obstacle(self._torch, graph, still)
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


def obstacle(torch: Any, graph: Any, still: Sequence[int]) -> str:
    """Why a pass cannot be recorded, as far as its operators show; empty when it can."""
    nodes, given = list(graph.graph.nodes), _placeholders(graph)
    values = [node.meta.get("val") for node in nodes if not _is_constant(node)]
    devices = {value.device for value in values if isinstance(value, torch.Tensor)}
    if len(devices) != 1:
        return "it is not computed on one device"
    if not all(isinstance(node.meta.get("val"), torch.Tensor) for node in given):
        return "it is given numbers, which a recording would not follow"
    moving = {node for index, node in enumerate(given) if index not in {*still}}
    if any(moving & {*_changed(node)} for node in nodes):
        return "it changes what it is given"
    if any(map(_keeps_seed, nodes)):
        return "its attention keeps the seed of its dropout in another place when it is recorded"
    waiting = [_name(node) for node in nodes if _waits(torch, node)]
    return f"it waits for the GPU, in {waiting[0]}" if waiting else ""


WAITING = ("nonzero", "masked_select", "_local_scalar_dense", "_unique2", "unique_consecutive")
"""Operators whose result has a size, or is a number, that the CPU must know."""
INDEXING = ("index", "index_put", "index_put_", "_unsafe_index", "_unsafe_index_put")
"""Which look for what a mask marks."""


COPYING = ("_to_copy", "copy", "copy_")
SEEDED = ("_scaled_dot_product_efficient_attention", "_efficient_attention")
"""Attention whose dropout begins with a seed that is kept for the backward pass: on the host, but
on the GPU while a graph is recorded. A pass that finds it in the other place ends the process."""


def _keeps_seed(node: Any) -> bool:
    if not _name(node).startswith(SEEDED):
        return False
    names = [one.name for one in node.target._schema.arguments]
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    return bool(given.get("dropout_p"))


def _waits(torch: Any, node: Any) -> bool:
    """A capture that fails ends most badly on a GPU: it is not begun where it is known to."""
    if _name(node) in COPYING:  # a constant from the host
        values = [each.meta.get("val") for each in node.args if hasattr(each, "meta")]
        return len({value.device for value in [*values, node.meta["val"]]}) > 1
    if _name(node) in INDEXING:
        values = [each.meta.get("val") for each in node.args[1] if hasattr(each, "meta")]
        return any(value.dtype in (torch.bool, torch.uint8) for value in values)
    return _name(node) in WAITING


def _is_constant(node: Any) -> bool:
    """A number of the model's own, kept as a tensor on the host: kernels are given its value."""
    parts = [node] if node.op == "get_attr" else list(node.args)
    is_fixed = bool(parts) and all(getattr(each, "op", "") == "get_attr" for each in parts)
    value = node.meta.get("val")
    return is_fixed and value is not None and value.dim() == 0 and value.device.type == "cpu"


def _name(node: Any) -> str:
    schema = getattr(node.target, "_schema", None)
    return schema.name.rpartition("::")[2] if schema is not None else ""


def _changed(node: Any) -> list[Any]:
    """The tensors that an operator writes to. torch has left no more than copies at the end."""
    schema = getattr(node.target, "_schema", None)
    if schema is None:
        return []
    arguments = zip(schema.arguments, node.args, strict=False)
    found = [one for known, one in arguments if known.alias_info and known.alias_info.is_write]
    return [one for one in found if hasattr(one, "op")]
