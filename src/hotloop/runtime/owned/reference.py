"""From `jobs.py:MyJob name=value …` to the job: its file imported, its class made, settings set."""

from __future__ import annotations

import ast
import contextlib
import importlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any

from hotloop.errors import JobInvalid
from hotloop.training_job import REQUIRED, TrainingJob

RETURNS = {
    "model": "the torch.nn.Module to train",
    "data": "a Dataset, tensors, or an iterable of batches",
    "loss": "the mean loss of a batch, or (sum, weight)",
    "optimizer": "a torch optimizer of the parameters it is given",
}
SIGNATURES = {
    "model": "model(self)",
    "data": "data(self)",
    "loss": "loss(self, model, batch)",
    "optimizer": "optimizer(self, parameters)",
}


def load(target: str, entry: str, is_module: bool, words: list[str]) -> TrainingJob:
    """`words`: settings, as `name=value`."""
    module = _imported(target, is_module)
    kind = _class(module, target, entry)
    require_methods(kind)
    job = made(kind)
    for word in words:
        _set(job, word)
    return job


def made(kind: type[TrainingJob]) -> TrainingJob:
    try:
        return kind()
    except TypeError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
            raise  # inside its own __init__
        raise JobInvalid(
            f"{kind.__name__} cannot be made without arguments: {error}.",
            "Give every argument of its __init__ a default.",
        ) from None


def require_methods(kind: type[TrainingJob]) -> None:
    for name in REQUIRED:
        if getattr(kind, name) is getattr(TrainingJob, name):
            raise JobInvalid(
                f"{kind.__name__} has no method {SIGNATURES[name]}.",
                f"Write one that returns {RETURNS[name]}.",
            )
        if not callable(getattr(kind, name)):
            raise JobInvalid(
                f"{kind.__name__}.{name} is not a method.",
                f"Make it {SIGNATURES[name]}, which returns {RETURNS[name]}.",
            )


def _imported(target: str, is_module: bool) -> ModuleType:
    try:
        return importlib.import_module(target) if is_module else _from_file(target)
    except SystemExit as error:
        raise JobInvalid(
            f"{target} ended the program while it was imported.",
            'Put what it does as a script behind `if __name__ == "__main__":`.',
        ) from error
    except Exception as error:
        raise JobInvalid(
            f"{target} cannot be imported: {_said(error)}.",
            "Correct it, or choose the interpreter that has what it needs with --python.",
        ) from error


def _from_file(path: str) -> ModuleType:
    """Under the file's own name, as if it had been imported from its folder: it can be pickled."""
    name = os.path.splitext(os.path.basename(path))[0]
    if not name.isidentifier() or name in sys.modules:
        name = f"job_{name}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _class(module: ModuleType, target: str, entry: str) -> type[TrainingJob]:
    kind = getattr(module, entry, None)
    if isinstance(kind, type) and issubclass(kind, TrainingJob):
        return kind
    if kind is not None:
        raise JobInvalid(
            f"{entry} in {target} is not a class that inherits from hotloop.TrainingJob.",
            f"Write: class {entry}(hotloop.TrainingJob).",
        )
    jobs = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, TrainingJob) and value is not TrainingJob
    ]
    has = f"It has {', '.join(jobs)}." if jobs else "It has no class of hotloop.TrainingJob at all."
    raise JobInvalid(f"There is no class {entry} in {target}.", has)


def _set(job: TrainingJob, word: str) -> None:
    name, equals, text = word.partition("=")
    if not equals:
        known = ", ".join(settings(job))
        raise JobInvalid(f"{word!r} is not name=value.", f"Settings are {known}.")
    has = require_setting(job, name)
    try:
        setattr(job, name, _value(text, has))
    except ValueError:
        raise JobInvalid(
            f"The setting {name} of {type(job).__name__} cannot be {text!r}.",
            f"It is of type {type(has).__name__}.",
        ) from None


def require_setting(job: TrainingJob, name: str) -> Any:
    """What it is set to."""
    known = settings(job)
    if name not in known:
        raise JobInvalid(
            f"{name!r} is no setting of {type(job).__name__}.", f"Settings are {', '.join(known)}."
        )
    return known[name]


def settings(job: TrainingJob) -> dict[str, Any]:
    """Plain values of the class and of the classes it inherits from, by name."""
    plain = (bool, int, float, str, type(None))
    return {
        name: getattr(job, name)
        for kind in reversed(type(job).__mro__)
        for name in vars(kind)
        if not name.startswith("_") and isinstance(getattr(job, name, job), plain)
    }


def _value(text: str, like: Any) -> Any:
    if isinstance(like, bool):
        if text.lower() not in ("true", "false", "1", "0"):
            raise ValueError(text)
        return text.lower() in ("true", "1")
    if isinstance(like, int | float):
        return type(like)(text)
    if like is None:
        with contextlib.suppress(ValueError, SyntaxError):
            return ast.literal_eval(text)
    return text


def _said(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].rstrip('.')}" if lines else type(error).__name__
