"""The state of a script's models and optimizers, saved by one run and gone on from by another.

As plain PyTorch would do it, for that is what is to be shown: a checkpoint of a run under a plan is
one of the plain job's, and the reverse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hotloop.runtime.marks import Mark, matched, shapes


@dataclass(frozen=True)
class Parts:
    """In the order in which they were first used. Of models that is the same in every run."""

    models: list[Any]
    optimizers: list[Any]

    def __bool__(self) -> bool:
        """Whether there is a state at all. Parameters may be updated by hand, without optimizer."""
        return bool(self.models)


def save(torch: Any, parts: Parts, path: str) -> str:
    """Why it could not be saved; empty when it was."""
    try:
        state = {
            "models": [model.state_dict() for model in parts.models],
            "optimizers": [optimizer.state_dict() for optimizer in parts.optimizers],
            "marks": _marks(parts),
        }
        torch.save(state, path)
    except Exception as error:  # a script's own classes may fail as they like
        return f"the state could not be saved: {_said(error)}"
    return ""


def load(torch: Any, parts: Parts, path: str) -> str:
    """Why it could not be loaded; empty when it was."""
    try:
        # On the host: a second copy need not fit on the device.
        state = torch.load(path, map_location="cpu", weights_only=False)
        if problem := _difference(parts, state):
            return problem
        for model, saved in zip(parts.models, state["models"], strict=True):
            model.load_state_dict(saved)
        for here, there in matched(_marks(parts), state["marks"]).items():
            parts.optimizers[here].load_state_dict(state["optimizers"][there])
    except Exception as error:
        return f"the state could not be loaded: {_said(error)}"
    return ""


def _difference(parts: Parts, state: dict[str, list[Any]]) -> str:
    """What PyTorch would not complain of, or not clearly: it casts to another format in silence."""
    for what, here in (("models", parts.models), ("optimizers", parts.optimizers)):
        if len(here) != len(state[what]):
            return f"the state has {len(state[what])} {what}, the job {len(here)}"
    for model, saved in zip(parts.models, state["models"], strict=True):
        then, now = _outline(saved), _outline(model.state_dict())
        for name in dict.fromkeys((*then, *now)):
            if then.get(name) != now.get(name):
                return (
                    f"{name} of {type(model).__name__} is {then.get(name, 'not there')} in the "
                    f"state, and {now.get(name, 'not there')} in the job"
                )
    return ""


def _marks(parts: Parts) -> dict[int, Mark]:
    """Without numbers: two runs need not begin from the same."""
    return {place: (shapes(one), "") for place, one in enumerate(parts.optimizers)}


def _outline(state: dict[str, Any]) -> dict[str, str]:
    """Each entry's format and shape."""
    return {
        name: f"{value.dtype} {tuple(value.shape)}".removeprefix("torch.")
        if hasattr(value, "dtype")
        else type(value).__name__
        for name, value in state.items()
    }


def _said(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return " ".join(line.strip() for line in lines)[:500]
