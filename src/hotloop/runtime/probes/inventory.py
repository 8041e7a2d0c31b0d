"""What the script is made of: its models, optimizers, loaders, and the precision it runs in."""

from __future__ import annotations

import math
import weakref
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hotloop.levers.blocks import repeated_blocks
from hotloop.levers.eight_bits import is_large
from hotloop.levers.folding import is_foldable
from hotloop.levers.padded_products import odd_sizes
from hotloop.levers.staging.files import names_files
from hotloop.measurement import (
    Events,
    Inventory,
    Kind,
    LoaderSeen,
    LoopSeen,
    ModelSeen,
    OptimizerSeen,
    Precision,
)
from hotloop.runtime.owned import augmenting
from hotloop.runtime.probes.clock import Numbers
from hotloop.seams import Seams


class InventoryProbe:
    """Meets each model, optimizer and loader once, when it is numbered. The clock does the rest."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.numbers = {
            "model": Numbers(_each_its_own, self._meet_model),
            "optimizer": Numbers(_optimizer_signature, self._meet_optimizer),
            "loader": Numbers(self._loader_signature, self._meet_loader),
        }
        self._datasets = Numbers(_dataset_signature)
        self._models: dict[int, tuple[weakref.ref[Any], ModelSeen]] = {}
        self._optimizers: dict[int, tuple[weakref.ref[Any], OptimizerSeen]] = {}
        self._loaders: dict[int, LoaderSeen] = {}
        self._autocast: str | None = None
        self._scaler = False
        self._built = False
        self._loop: Any = None

    def attach(self, seams: Seams) -> None:
        seams.optimizer.before.append(self._see_building)
        seams.scale.after.append(self._see_scaler)
        seams.loop.after.append(self._see_loop)

    def inventory(self, events: Events) -> Inventory:
        calls = _counts(events, Kind.FORWARD_BEGIN) + _counts(events, Kind.NO_GRAD_BEGIN)
        steps = _counts(events, Kind.OPTIMIZER_END)
        return Inventory(
            models=[self._model(number, calls[number]) for number in self._whole_models(calls)],
            optimizers=[
                self._optimizer(number, steps[number])
                for number in sorted(self._optimizers)
                if steps[number]
            ],
            loaders=[seen for _, seen in sorted(self._loaders.items())],
            precision=self._precision(),
            optimizer_built=self._built,
            threads=self._torch.get_num_threads(),
            loop=_loop(self._loop) if hasattr(self._loop, "optimizer") else None,
        )

    def _whole_models(self, calls: Counter[int]) -> list[int]:
        """Without those that are called now and then as a part of another."""
        alive = {number: known() for number, (known, _) in sorted(self._models.items())}
        called = {id(model): calls[number] for number, model in alive.items()}
        parts = {
            id(part)
            for number, model in alive.items()
            for part in (model.modules() if model is not None else ())
            if part is not model and called.get(id(part), math.inf) <= calls[number]
        }
        return [number for number, model in alive.items() if id(model) not in parts]

    def _loader_signature(self, loader: Any) -> object:
        """A loader that is built again every epoch is still the same loader."""
        try:
            dataset = self._datasets.of(loader.dataset)
        except TypeError:  # a list, say: nobody can tell whether it still lives
            dataset = id(loader.dataset)
        return type(loader).__name__, dataset, _batch_size(loader), loader.num_workers

    def _meet_loader(self, number: int, loader: Any) -> None:
        self._loaders[number] = _loader(loader)

    def _meet_model(self, number: int, model: Any) -> None:
        self._models[number] = weakref.ref(model), _model(self._torch, model)
        self._see_autocast()

    def _meet_optimizer(self, number: int, optimizer: Any) -> None:
        self._optimizers[number] = weakref.ref(optimizer), _optimizer(optimizer)

    def _model(self, number: int, calls: int) -> ModelSeen:
        """As it is now; as it was at first, where the script has let go of it."""
        known, seen = self._models[number]
        model = known()
        now = seen if model is None else _model(self._torch, model)
        return replace(now, calls=calls)

    def _optimizer(self, number: int, steps: int) -> OptimizerSeen:
        known, seen = self._optimizers[number]
        optimizer = known()
        return replace(seen if optimizer is None else _optimizer(optimizer), steps=steps)

    def _see_autocast(self) -> None:
        torch = self._torch
        for device in ("cuda", "cpu"):
            if torch.is_autocast_enabled(device):
                self._autocast = _short(torch.get_autocast_dtype(device))
                return

    def _see_building(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._built = True

    def _see_scaler(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._scaler = self._scaler or bool(args[0].is_enabled())

    def _see_loop(self, args: tuple[Any, ...], result: Any, began: int) -> None:
        self._loop = args[0]

    def _precision(self) -> Precision:
        backends = self._torch.backends
        matmul = _uses_tf32(backends.cuda.matmul, lambda: backends.cuda.matmul)
        cudnn = _uses_tf32(backends.cudnn, lambda: backends.cudnn.conv)
        return Precision(
            autocast=self._autocast,
            grad_scaler=self._scaler,
            tf32_matmul=matmul,
            tf32_cudnn=cudnn,
            cudnn_benchmark=bool(backends.cudnn.benchmark),
            deterministic=bool(
                backends.cudnn.deterministic or self._torch.are_deterministic_algorithms_enabled()
            ),
            default_dtype=_short(self._torch.get_default_dtype()),
        )


def _loop(loop: Any) -> LoopSeen:
    return LoopSeen(
        batch_size=loop.batch_size,
        microbatch=min(loop.microbatch, loop.batch_size),
        resizable=loop.feed.resizable,
        augments=augmenting.of(loop.job) is not None,
        length=loop.length,
    )


def _counts(events: Events, kind: Kind) -> Counter[int]:
    pairs = zip(events.kind, events.key, strict=True)
    return Counter(key for seen, key in pairs if seen == kind)


def _each_its_own(model: Any) -> object:
    return object()


def _uses_tf32(older: Any, newer: Callable[[], Any]) -> bool:
    """Reading the older setting raises once a script has used the newer one."""
    try:
        return bool(older.allow_tf32)
    except RuntimeError:
        return bool(newer().fp32_precision == "tf32")


def _optimizer_signature(optimizer: Any) -> object:
    """Scripts that build an optimizer per item still have one optimizer, as far as steps go."""
    shapes = tuple(
        tuple(None if _is_lazy(p) else tuple(p.shape) for p in group["params"])
        for group in optimizer.param_groups
    )
    return type(optimizer).__name__, shapes


def _dataset_signature(dataset: Any) -> object:
    """One that is built again every epoch lies elsewhere each time, and is still the same."""
    try:
        return type(dataset).__name__, len(dataset)
    except Exception:  # many have no length, and say so in ways of their own
        return type(dataset).__name__


def _optimizer(optimizer: Any) -> OptimizerSeen:
    groups = optimizer.param_groups
    first = groups[0] if groups else {}
    foreach = first.get("foreach")
    return OptimizerSeen(
        name=type(optimizer).__name__,
        parameters=sum(p.numel() for group in groups for p in group["params"] if not _is_lazy(p)),
        groups=len(groups),
        fused=bool(first.get("fused")),
        foreach=None if foreach is None else bool(foreach),
        steps=0,
        tensors=sum(len(group["params"]) for group in groups),
    )


def _loader(loader: Any) -> LoaderSeen:
    drawn = _drawn_by(loader)
    sampler = type(getattr(drawn, "sampler", None)).__name__
    return LoaderSeen(
        name=type(loader).__name__,
        dataset=type(loader.dataset).__name__,
        samples=_length(loader.dataset),
        batches=_length(loader),
        batch_size=_batch_size(loader),
        workers=loader.num_workers,
        prefetch=loader.prefetch_factor,
        persistent=bool(loader.persistent_workers),
        pinned=bool(loader.pin_memory),
        drop_last=bool(getattr(drawn, "drop_last", False)),
        shuffled="Random" in sampler,
        names_files=names_files(loader.dataset),
    )


def _drawn_by(loader: Any) -> Any:
    """Who knows how samples are drawn: of a loader that is given its batches, whoever makes them.

    Libraries wrap that once more, to share batches among processes.
    """
    if loader.batch_size is not None or loader.batch_sampler is None:
        return loader
    drawn = loader.batch_sampler
    while not hasattr(drawn, "sampler") and hasattr(drawn, "batch_sampler"):
        drawn = drawn.batch_sampler
    return drawn


def _batch_size(loader: Any) -> int | None:
    if loader.batch_size is not None:
        return int(loader.batch_size)
    size = getattr(loader.batch_sampler, "batch_size", None)
    return size if isinstance(size, int) else None


def _length(thing: Any) -> int | None:
    try:
        return len(thing)
    except Exception:  # a dataset's own __len__ may raise what it likes
        return None


def _model(torch: Any, model: Any) -> ModelSeen:
    parameters = [p for p in model.parameters() if not _is_lazy(p)]
    inner = getattr(model, "_orig_mod", model)
    return ModelSeen(
        name=type(inner).__name__,
        parameters=sum(p.numel() for p in parameters),
        # A GAN freezes the one while the other learns: what has a gradient is trained all the same.
        trainable=sum(p.numel() for p in parameters if p.requires_grad or p.grad is not None),
        dtypes=sorted({_short(p.dtype) for p in parameters}),
        devices=sorted({str(p.device) for p in parameters}),
        compiled=inner is not model or getattr(model, "_compiled_call_impl", None) is not None,
        channels_last=any(
            p.dim() == 4
            and p.shape[1] > 1
            and p.is_contiguous(memory_format=torch.channels_last)
            and not p.is_contiguous()
            for p in parameters
        ),
        calls=0,
        convolutions=sum(p.dim() in (4, 5) for p in parameters),
        batch_norms=sum(_is_batch_norm(torch, part) for part in model.modules()),
        blocks=sum(map(len, repeated_blocks(model))),
        odd_sizes=sorted(
            {size for p in parameters if p.dim() == 2 for size in odd_sizes(tuple(p.shape))}
        ),
        convolutions_1d=sum(_is_1d(torch, part) for part in model.modules()),
        large_matrices=sum(is_large(p.shape) for p in parameters),
        foldable=sum(is_foldable(torch, part) for part in model.modules()),
    )


def _is_batch_norm(torch: Any, module: Any) -> bool:
    """Also one that normalises by what it has learned: whether it does, may change any time."""
    return isinstance(module, torch.nn.modules.batchnorm._BatchNorm)


def _is_1d(torch: Any, module: Any) -> bool:
    return isinstance(module, (torch.nn.Conv1d, torch.nn.ConvTranspose1d))


def _is_lazy(parameter: Any) -> bool:
    """Of a lazy module before its first call: such a parameter has no shape, and says so loudly."""
    return hasattr(parameter, "materialize")


def _short(dtype: Any) -> str:
    return str(dtype).removeprefix("torch.")
