"""What a job's methods return, looked at once: one sentence names what is wrong with it."""

from __future__ import annotations

import inspect
from typing import Any

from hotloop.errors import JobInvalid
from hotloop.training_job import TrainingJob

PRECISIONS = ("float32", "bfloat16", "float16")
GIVEN = {
    "model": (),
    "data": (),
    "loss": ("model", "batch"),
    "optimizer": ("parameters",),
    "augment": ("inputs",),
    "schedule": ("optimizer",),
    "evaluate": ("model",),
    "finished": ("trained",),
}
"""What each method is called with."""


class Checked:
    """The job's own answers, or JobInvalid."""

    def __init__(self, torch: Any, job: TrainingJob) -> None:
        self._torch = torch
        self._job = job
        self._require_settings()
        self._require_signatures()

    def model(self) -> Any:
        model = self._job.model()
        if not isinstance(model, self._torch.nn.Module):
            raise self._wrong("model()", "a torch.nn.Module", model)
        if not any(parameter.requires_grad for parameter in model.parameters()):
            raise self._invalid(
                "model() must return a torch.nn.Module with parameters that require grad; this "
                f"{type(model).__name__} has none"
            )
        return model

    def optimizer(self, model: Any) -> Any:
        learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
        optimizer = self._job.optimizer(learned)
        if not isinstance(optimizer, self._torch.optim.Optimizer):
            raise self._wrong("optimizer(parameters)", "a torch.optim.Optimizer", optimizer)
        ours = {id(parameter) for parameter in learned}
        theirs = [p for group in optimizer.param_groups for p in group["params"]]
        if not any(id(parameter) in ours for parameter in theirs):
            raise self._invalid(
                "optimizer(parameters) must return an optimizer of the parameters it is given; "
                "this one has none of them"
            )
        return optimizer

    def schedule(self, optimizer: Any) -> Any:
        schedule = self._job.schedule(optimizer)
        if schedule is not None and not callable(getattr(schedule, "step", None)):
            raise self._wrong("schedule(optimizer)", "a learning-rate scheduler or None", schedule)
        return schedule

    def loss(self, returned: Any) -> tuple[Any, Any]:
        """The loss to differentiate and its weight, which is None for a mean."""
        loss, weight = returned, None
        if isinstance(returned, tuple):
            if len(returned) != 2:
                raise self._wrong(
                    "loss(model, batch)", "a mean loss, or (sum, weight)", returned, len(returned)
                )
            loss, weight = returned
        if not isinstance(loss, self._torch.Tensor) or not loss.is_floating_point():
            raise self._wrong("loss(model, batch)", "a tensor of one floating-point number", loss)
        if loss.numel() != 1:
            raise self._invalid(
                "loss(model, batch) must return a tensor of one number, not one of shape "
                f"{tuple(loss.shape)}; take its mean"
            )
        if not loss.requires_grad:
            raise self._invalid(
                "loss(model, batch) must return a tensor that requires grad, computed from what "
                "the model returned; this one was detached, or made under no_grad"
            )
        self._require_weight(weight)
        return loss, weight

    def evaluation(self, model: Any) -> Any:
        found = self._job.evaluate(model)
        figures = found.values() if isinstance(found, dict) else (found,)
        if found is not None and not all(map(_is_number, figures)):
            raise self._wrong("evaluate(model)", "a number, a dict of numbers or None", found)
        return found

    def _require_weight(self, weight: Any) -> None:
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        scalar = isinstance(weight, self._torch.Tensor) and weight.numel() == 1
        if weight is not None and not number and not scalar:
            raise self._wrong(
                "loss(model, batch)", "(sum, weight) with a number as its weight", weight
            )

    def _require_signatures(self) -> None:
        for name, given in GIVEN.items():
            try:
                inspect.signature(getattr(self._job, name)).bind(*given)
            except TypeError:
                words = ", ".join(("self", *given))
                raise self._invalid(f"{name} must be written as {name}({words})") from None
            except ValueError:
                continue  # written in C: it does not tell

    def _require_settings(self) -> None:
        job = self._job
        for name, least in (("batch_size", 1), ("microbatch", 0), ("epochs", 1), ("workers", 0)):
            value = getattr(job, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise self._invalid(f"{name} must be a whole number from {least}, not {value!r}")
        if job.precision not in PRECISIONS:
            raise self._invalid(
                f"precision must be one of {', '.join(PRECISIONS)}, not {job.precision!r}"
            )

    def _wrong(self, what: str, wanted: str, found: Any, length: int | None = None) -> JobInvalid:
        name = type(found).__name__
        kind = "None" if found is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"
        kind += "" if length is None else f" of {length}"
        return self._invalid(f"{what} must return {wanted}, not {kind}")

    def _invalid(self, clause: str) -> JobInvalid:
        name = type(self._job).__name__
        return JobInvalid(f"{name}.{clause}.", "`help(hotloop.TrainingJob)` says what is expected.")


def _is_number(value: Any) -> bool:
    """Also a tensor or an array of one."""
    try:
        float(value)
    except (TypeError, ValueError, RuntimeError):
        return False
    return not isinstance(value, str)
