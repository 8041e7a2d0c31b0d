"""Reaches the seams of a job by interception: of a script that knows nothing of us, and of our own
loop in the same way."""

from __future__ import annotations

import functools
import inspect
import sys
from time import perf_counter_ns
from types import ModuleType
from typing import Any

from hotloop.runtime.owned.loop import Loop
from hotloop.runtime.patches import Patches, through
from hotloop.runtime.roots import RootFinder
from hotloop.seams import Seam, Seams

LOSSES = (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "nll_loss",
    "smooth_l1_loss",
)
"""Of torch.nn.functional. The criteria among torch's modules call these."""
UPDATING = ("ASGD", "Adadelta", "Adam", "AdamW", "RMSprop", "Rprop", "SGD")
"""Of torch.optim. Who listens to updates captures them, and no others can be."""


class ScriptDriver:
    def __init__(self, torch: ModuleType, seams: Seams) -> None:
        self._torch = torch
        self._seams = seams
        self._patches = Patches()
        self.roots = RootFinder(torch, seams)

    def attach(self) -> None:
        torch, seams, patches = self._torch, self._seams, self._patches
        self.roots.attach(patches)
        data = torch.utils.data.dataloader
        if seams.loader_built.is_used:
            named = _by_name(seams.loader_built, data.DataLoader.__init__)
            patches.replace(data.DataLoader, "__init__", named)
        patches.route(data.DataLoader, "__iter__", seams.loader)
        patches.route(data._BaseDataLoaderIter, "__next__", seams.batch)
        patches.route(torch.autograd, "backward", seams.backward)
        if seams.grad.is_used:
            patches.replace(torch.autograd, "grad", _grad(torch, seams.grad))
        patches.route(torch.Tensor, "retain_grad", seams.retained)
        patches.route(torch.amp.grad_scaler.GradScaler, "scale", seams.scale)
        patches.route(torch.amp.grad_scaler.GradScaler, "step", seams.scaler_step)
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            self._attach_replaceable(torch.nn.utils, name, seams.clip)
        patches.route(torch.optim.Optimizer, "__init__", seams.optimizer)
        for owner in (torch.optim.Optimizer, torch.nn.Module):
            patches.route(owner, "zero_grad", seams.zero_grad)
        patches.route(torch.amp.autocast_mode.autocast, "__enter__", seams.autocast)
        if seams.threads.is_used:
            counted = _setting_threads(seams.threads, torch.set_num_threads)
            patches.replace(torch, "set_num_threads", counted)
        for name in LOSSES:
            self._attach_replaceable(torch.nn.functional, name, seams.loss)
        patches.route(Loop, "begin", seams.loop)
        self._attach_moves()
        self._attach_updates()
        self._attach_steps()

    def detach(self) -> None:
        self._patches.restore()

    def _attach_replaceable(self, owner: Any, name: str, seam: Seam) -> None:
        if seam.is_used:
            self._patches.replace(owner, name, _replaceable(seam, getattr(owner, name)))

    def _attach_moves(self) -> None:
        """Only for a build of torch that knows a device other than the host.

        Whether there is a GPU is not asked: that would initialise the driver before the script
        forks, which CUDA does not survive.
        """
        torch, seam = self._torch, self._seams.move
        if seam.is_used and (torch.version.cuda or torch.version.hip):
            device = torch.device
            replace = self._patches.replace
            replace(torch.Tensor, "to", _leaving_host(seam, torch.Tensor.to, device))
            replace(torch.Tensor, "cuda", _leaving_host(seam, torch.Tensor.cuda, None))

    def _attach_updates(self) -> None:
        """Inside the hooks that torch puts around a class's step when the first is built.

        It is told to do so at once, as it would then: put back, the class must still have them.
        """
        seam, optim = self._seams.update, self._torch.optim
        hook = optim.Optimizer.profile_hook_step
        for kind in [getattr(optim, name) for name in UPDATING] if seam.is_used else ():
            if not getattr(kind.step, "hooked", False):
                kind.step = hook(kind.step)
                kind.step.hooked = True
            if "step" in vars(kind):  # not inherited from another of them
                update = hook(_replaceable(seam, kind.step.__wrapped__))
                update.hooked = True
                self._patches.replace(kind, "step", update)

    def _attach_steps(self) -> None:
        """Torch's own global hooks: every optimizer passes them, without being known beforehand."""
        seam = self._seams.step
        if not seam.is_used:
            return
        hooks = sys.modules["torch.optim.optimizer"]  # torch.optim hides it

        began: list[int] = []  # an optimizer may step inside another's closure

        def before(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            for tell in seam.before:
                tell((optimizer, *args), kwargs)
            began.append(perf_counter_ns())

        def after(optimizer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            since = began.pop()
            for tell in seam.after:
                tell((optimizer, *args), None, since)

        self._patches.on_restore(hooks.register_optimizer_step_pre_hook(before).remove)
        self._patches.on_restore(hooks.register_optimizer_step_post_hook(after).remove)


def _by_name(seam: Seam, init: Any) -> Any:
    """A constructor whose arguments reach the seam by name, however the script gave them."""
    names = list(inspect.signature(init).parameters)[1:]
    passing = through(seam, init)

    @functools.wraps(init)
    def build(made: Any, *args: Any, **kwargs: Any) -> Any:
        return passing(made, **dict(zip(names, args, strict=False)), **kwargs)

    return build


def _grad(torch: Any, seam: Seam) -> Any:
    """Torch differentiates what it compiles by this very function: that is no pass of the job's."""
    original = torch.autograd.grad
    passing, is_compiling = through(seam, original), torch.compiler.is_compiling

    @functools.wraps(original)
    def grad(*args: Any, **kwargs: Any) -> Any:
        is_torchs = is_compiling() or _are_stand_ins(args)
        return (original if is_torchs else passing)(*args, **kwargs)

    return grad


def _are_stand_ins(args: tuple[Any, ...]) -> bool:
    """For tensors: before 2.13 torch does not say that it is compiling when it uses them."""
    outputs = args[0] if args else None
    first = outputs[0] if isinstance(outputs, list | tuple) and outputs else outputs
    return type(first).__name__ in ("FakeTensor", "FunctionalTensor")


def _setting_threads(seam: Seam, original: Any) -> Any:
    """torch takes the number by position alone; at the seam it has a name, so it can be changed."""

    def named(*, threads: int) -> None:
        original(threads)

    passing = through(seam, named)

    @functools.wraps(original)
    def set_num_threads(threads: int, /) -> None:
        passing(threads=threads)

    return set_num_threads


def _replaceable(seam: Seam, original: Any) -> Any:
    """A function that tells the seam who is to do its work, which may be changed there."""

    def work(*args: Any, by: Any, **kwargs: Any) -> Any:
        return by(*args, **kwargs)

    passing = through(seam, work)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return passing(*args, by=original, **kwargs)

    # What torch.compile meets in a script's own graphs is torch's function, as ever.
    call._torchdynamo_inline = original  # type: ignore[attr-defined]
    return call


def _leaving_host(seam: Seam, method: Any, device: Any) -> Any:
    """Casts, and tensors that are already on the device, pass at the cost of a look."""

    def go(tensor: Any, *args: Any, by: Any, **kwargs: Any) -> Any:
        return by(tensor, *args, **kwargs)

    passing = through(seam, go)

    def move(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if tensor.is_cuda or not (device is None or _names_a_device(device, args, kwargs)):
            return method(tensor, *args, **kwargs)
        return passing(tensor, *args, by=method, **kwargs)

    return move


def _names_a_device(device: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    target = args[0] if args else kwargs.get("device")
    if isinstance(target, device):
        return bool(target.type != "cpu")
    if isinstance(target, str):
        return not target.startswith("cpu")
    return isinstance(target, int) or bool(getattr(target, "is_cuda", False))
