"""hotloop makes PyTorch jobs fast, and shows that they still do the same training."""

from hotloop.version import VERSION as __version__

TYPE_CHECKING = False  # importing typing would take a fifth of the time that --help takes
if TYPE_CHECKING:
    from typing import Any

    from hotloop.api import optimize, profile
    from hotloop.training import train
    from hotloop.training_job import TrainingJob

__all__ = ["TrainingJob", "__version__", "optimize", "profile", "train"]

_HOME = {
    "TrainingJob": "hotloop.training_job",
    "train": "hotloop.training",
    "optimize": "hotloop.api",
    "profile": "hotloop.api",
}


def __getattr__(name: str) -> "Any":
    """The public names, each imported when it is first asked for: a command needs none of them."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> "list[str]":
    return sorted({*globals(), *_HOME})
