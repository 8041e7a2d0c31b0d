"""What an optimizer says of itself in a checkpoint: under a plan the same as without one.

Whoever loads a checkpoint takes the optimizer's settings over with its state: what a plan has set
would go on in a plain job, which did not choose it and need not bear it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any


def save_as_plain(
    torch: Any, optimizer: Any, settings: Mapping[str, Any], numbers: Collection[str] = ()
) -> None:
    """`settings`: what the script had, of those that a plan has changed. `numbers`: those that it
    has made tensors of."""

    def plain(_: Any, saved: dict[str, Any]) -> dict[str, Any]:
        states = {**saved["state"]}
        for group in saved["param_groups"]:
            group.update({name: settings[name] for name in settings if name in group})
            group.update({name: float(group[name]) for name in numbers})
            if not group.get("fused") and not group.get("capturable"):
                for index in group["params"]:
                    _count_on_the_host(torch, states, index)
        return {**saved, "state": states}

    optimizer.register_state_dict_post_hook(plain)


def save_contiguous(optimizer: Any, reordered: Collection[Any]) -> None:
    """What it keeps for these parameters. Fused kernels of a plain job would refuse another order,
    or mix the numbers up."""

    def contiguous(_: Any, saved: dict[str, Any]) -> dict[str, Any]:
        states = {**saved["state"]}
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for index, parameter in enumerate(parameters):
            if parameter in reordered and index in states:
                states[index] = {
                    name: value.contiguous() if is_alike(value, parameter) else value
                    for name, value in states[index].items()
                }
        return {**saved, "state": states}

    optimizer.register_state_dict_post_hook(contiguous)


def is_alike(value: Any, parameter: Any) -> bool:
    """Whether it is kept for each of the parameter's numbers."""
    return bool(getattr(value, "shape", None) == parameter.shape)


def _count_on_the_host(torch: Any, states: dict[int, Any], index: int) -> None:
    """Steps counted on a device would be waited for at each update."""
    step = states.get(index, {}).get("step")
    if torch.is_tensor(step):
        states[index] = {**states[index], "step": step.cpu()}
