"""What in a graph has the same value at every call, and what that value is.

A mask made of the model's own buffers, of numbers and of sizes is such a value. It is computed
while the graph is compiled, and computed again if a buffer is later found to be another tensor or
to have been written to: torch's guards look at shapes, not at values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hotloop.levers.attention.nodes import is_node, is_written, name_of
from hotloop.levers.graphs import Captured

_NAMES = """
eq ne lt le gt ge getitem tril triu ones zeros full arange view reshape unsqueeze squeeze expand
expand_as to bool float int long half bfloat16 double type type_as logical_not logical_and
logical_or invert bitwise_not bitwise_and bitwise_or and_ or_ not_ masked_fill where contiguous
transpose permute add sub rsub mul truediv div neg ones_like zeros_like full_like new_ones
new_zeros new_full new_tensor tensor sqrt clone detach repeat flip eye cumsum isinf abs pow
"""
PURE = frozenset(_NAMES.split())
"""Functions that neither draw random numbers nor leave anything behind."""


Test = Callable[[Sequence[Any]], bool]
"""Of the inputs of one call."""


class Constants:
    def __init__(self, torch: Any, captured: Captured) -> None:
        self._torch = torch
        self._inputs = captured.inputs
        owned = _owned(torch, captured.owner)
        placeholders = [node for node in captured.graph.graph.nodes if node.op == "placeholder"]
        self._place = {
            node: index
            for index, (node, value) in enumerate(zip(placeholders, captured.inputs, strict=False))
            if id(value) in owned
        }
        self._attributes = {
            node: value
            for node in captured.graph.graph.nodes
            if node.op == "get_attr"
            and isinstance(value := getattr(captured.graph, node.target, None), torch.Tensor)
        }

    def know(self, node: Any) -> bool:
        """Whether its value is the same at every call."""
        return self._leaves([node]) is not None

    def value(self, node: Any, inputs: Sequence[Any] | None = None) -> Any:
        with self._torch.no_grad():
            return self._value(node, self._inputs if inputs is None else inputs, {})

    def assume(self, nodes: list[Any], test: Test) -> list[Test]:
        """The test, made again only where a tensor that these depend on has changed."""
        places = sorted(set(self._leaves(nodes) or ()))
        seen = [_mark(self._inputs[place]) for place in places]

        def holds(inputs: Sequence[Any]) -> bool:
            nonlocal seen
            for place, (tensor, version) in zip(places, seen, strict=True):
                if inputs[place] is not tensor or tensor._version != version:
                    break
            else:
                return True
            if test(inputs):
                seen = [_mark(inputs[place]) for place in places]
                return True
            return False

        return [holds] if places else []

    def forget(self) -> None:
        self._inputs = ()

    def _leaves(self, nodes: list[Any]) -> list[int] | None:
        """Inputs that these depend on. None: on some that change from call to call."""
        pending, met, places = list(nodes), set(nodes), []
        while pending:
            node = pending.pop()
            if is_written(node):
                return None
            if node in self._place:
                places.append(self._place[node])
            elif node not in self._attributes:
                if name_of(node) not in PURE:
                    return None
                used = [each for each in node.all_input_nodes if each not in _stops(node)]
                pending += [each for each in used if each not in met]
                met.update(used)
        return places

    def _value(self, node: Any, inputs: Sequence[Any], known: dict[Any, Any]) -> Any:
        if node in self._place:
            return inputs[self._place[node]]
        if node in self._attributes:
            return self._attributes[node]
        if node not in known:
            find, stops = self._torch.fx.node.map_arg, _stops(node)
            args, kwargs = find(
                (node.args, node.kwargs),
                lambda each: None if each in stops else self._value(each, inputs, known),
            )
            if node.op == "call_method":
                known[node] = getattr(args[0], node.target)(*args[1:], **kwargs)
            else:
                known[node] = node.target(*args, **kwargs)
        return known[node]


def _stops(node: Any) -> set[Any]:
    """Sizes at which slices from the beginning end: `mask[:, :, :length, :length]`.

    Where a length may change from call to call the value is computed without that cut.
    """
    if name_of(node) != "getitem":
        return set()
    cuts = node.args[1] if isinstance(node.args[1], tuple) else (node.args[1],)
    slices = [cut for cut in cuts if isinstance(cut, slice) and is_node(cut.stop)]
    return {cut.stop for cut in slices if cut.start is None and cut.step is None}


def number(value: Any, constants: Constants) -> float | None:
    """A number, also where it is written as a tensor. None: it is none, or changes."""
    if is_node(value):
        if not constants.know(value):
            return None
        value = constants.value(value)
        value = value.item() if getattr(value, "numel", lambda: 0)() == 1 else None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def _owned(torch: Any, module: Any) -> set[int]:
    """Tensors that belong to the module, as buffers, as parameters or as plain attributes."""
    tensors = [*module.buffers(), *module.parameters()]
    for part in module.modules():
        tensors += [value for value in vars(part).values() if isinstance(value, torch.Tensor)]
    return {id(tensor) for tensor in tensors if not tensor.is_inference()}


def _mark(tensor: Any) -> tuple[Any, int]:
    return tensor, tensor._version
