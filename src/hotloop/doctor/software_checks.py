"""Whether driver and torch go together. A pure function of what was read."""

from __future__ import annotations

from hotloop.doctor.check import Check, ok, unknown, warning
from hotloop.doctor.state import State

NAME = "driver and torch"


def driver_and_torch(state: State) -> Check:
    torch, cuda = state.installed.torch, state.installed.cuda
    if state.installed.python is None:
        return unknown(NAME, "the interpreter does not run", "Name the job's own with --python.")
    if torch is None:
        return warning(NAME, "no torch in this interpreter", "Name the job's own with --python.")
    if state.installed.hip:
        return unknown(
            NAME, f"torch {torch} for ROCm {state.installed.hip}, which is not looked at"
        )
    if state.hidden:
        return ok(NAME, f"torch {torch}; CUDA_VISIBLE_DEVICES hides all GPUs")
    if state.gpu is None:
        return _without_a_gpu(state, torch, cuda)
    if cuda is None:
        seen = f"torch {torch} knows no CUDA, beside a {state.gpu.name or 'GPU'}"
        return warning(NAME, seen, "Install a CUDA build: pytorch.org/get-started/locally")
    return _with_both(state, torch, cuda)


def _without_a_gpu(state: State, torch: str, cuda: str | None) -> Check:
    built = f"torch {torch} for {f'CUDA {cuda}' if cuda else 'CPUs'}"
    if state.host.nvidia_on_bus:
        remedy = "Install the driver; in a container, start it with --gpus all."
        return warning(NAME, f"{built}, an NVIDIA GPU, and no driver that answers", remedy)
    if cuda is None:
        return ok(NAME, f"{built}, and no GPU")
    if state.host.nvidia_on_bus is None:
        return unknown(NAME, f"{built}; whether there is a GPU cannot be read")
    return ok(NAME, f"{built}, and no GPU: it runs on the CPU")


def _with_both(state: State, torch: str, cuda: str) -> Check:
    """Since CUDA 11 a driver serves all of its major version, whichever minor one torch is for."""
    seen = f"torch {torch} for CUDA {cuda}, driver {state.driver or '?'}"
    if state.driver_cuda is None or not _major(cuda):
        return unknown(NAME, f"{seen}; which CUDA it can serve is not told")
    seen += f" for up to {state.driver_cuda}"
    if (_major(state.driver_cuda) or 0) < (_major(cuda) or 0):
        remedy = f"Update the driver, or install a torch for CUDA {_major(state.driver_cuda)}."
        return warning(NAME, seen, remedy)
    return ok(NAME, seen)


def _major(version: str) -> int | None:
    first = version.partition(".")[0]
    return int(first) if first.isdigit() else None
