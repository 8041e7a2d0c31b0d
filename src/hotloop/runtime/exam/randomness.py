"""Chance taken out of an examined trial, the same way for the job and for the job under a plan.

Seeds are fixed, also for scripts that set none. What a dataset draws depends on the samples that
are asked for, not on the process that loads them. Dropout is off: compiled code draws other masks
than eager code from the same seed, and neither is wrong. Noise that is drawn to look like a tensor
does not depend on that tensor's order in memory, nor on its format but for rounding.
"""

from __future__ import annotations

import functools
import inspect
import random
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from hotloop.runtime.imports import when_imported
from hotloop.runtime.owned import augmenting

SEED = 20_071
DROPOUTS = (
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "alpha_dropout",
    "feature_alpha_dropout",
)

Replace = Callable[[Any, str, Any], None]
LIKE = ("randn_like", "rand_like", "randint_like")


def pin(torch: Any, offset: int, eager_random: bool) -> None:
    """`offset` is added to every seed, for a run that differs by chance alone."""
    pin_data(torch, offset)
    if offset:
        _shift_seeds(torch, "manual_seed", offset)
        _shift_seeds(random, "seed", offset)
    _switch_dropout_off(torch.nn.functional)
    _draw_in_plain_order(torch)
    augmenting.switch_off()
    if eager_random:
        import torch._inductor.config as inductor

        inductor.fallback_random = True


def pin_data(torch: Any, offset: int, replace: Replace = setattr) -> None:
    """What is drawn to load data, and nothing else. `replace`: puts a stand-in in its place."""
    seed_all = SEED + offset
    torch.manual_seed(seed_all)
    random.seed(seed_all)
    when_imported("numpy", lambda numpy: _pin_numpy(numpy, seed_all, offset, replace))
    _pin_datasets(torch, offset, replace)


def seed(torch: Any, number: int) -> None:
    """Every generator that a script shares with its loaders."""
    torch.manual_seed(number)
    random.seed(number)
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        numpy.random.seed(number % 2**32)


def state(torch: Any) -> dict[str, Any]:
    """Of every generator the script may draw from."""
    now: dict[str, Any] = {"torch": torch.get_rng_state(), "python": random.getstate()}
    if torch.cuda.is_initialized():
        now["cuda"] = torch.cuda.get_rng_state()
    numpy = sys.modules.get("numpy")
    if numpy is not None and hasattr(numpy, "random"):
        now["numpy"] = numpy.random.get_state()
    return now


def restore(torch: Any, was: dict[str, Any]) -> None:
    torch.set_rng_state(was["torch"])
    random.setstate(was["python"])
    if "cuda" in was:
        torch.cuda.set_rng_state(was["cuda"])
    if "numpy" in was:
        sys.modules["numpy"].random.set_state(was["numpy"])


def drawn(torch: Any) -> tuple[bytes, bytes]:
    """Changes when a random number is drawn on the CPU or on the GPU."""
    cuda = torch.cuda.get_rng_state() if torch.cuda.is_initialized() else None
    return _bytes(torch.get_rng_state()), _bytes(cuda)


def _bytes(state: Any) -> bytes:
    return b"" if state is None else bytes(state.tolist())


def _pin_numpy(numpy: Any, seed: int, offset: int, replace: Replace) -> None:
    numpy.random.seed(seed)
    unseeded = numpy.random.default_rng

    @functools.wraps(unseeded)
    def default_rng(given: Any = None) -> Any:
        if isinstance(given, int):
            return unseeded(given + offset)
        return unseeded(seed if given is None else given)

    replace(numpy.random, "default_rng", default_rng)
    if offset:
        _shift_seeds(numpy.random, "seed", offset)


def _shift_seeds(owner: Any, name: str, offset: int) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def seed(*args: Any, **kwargs: Any) -> Any:
        shifted = (args[0] + offset, *args[1:]) if args and isinstance(args[0], int) else args
        return original(*shifted, **kwargs)

    setattr(owner, name, seed)


def _pin_datasets(torch: Any, offset: int, replace: Replace) -> None:
    """Workers are forked off this process, and fetch in the same way."""
    fetcher = torch.utils.data._utils.fetch._MapDatasetFetcher
    original = fetcher.fetch

    def fetch(self: Any, index: Any) -> Any:
        with _seeded_by(torch, zlib.crc32(repr(index).encode()) + offset):
            return original(self, index)

    replace(fetcher, "fetch", fetch)


@contextmanager
def _seeded_by(torch: Any, seed: int) -> Iterator[None]:
    """What is drawn inside depends on the seed alone, and leaves no trace outside."""
    numpy = sys.modules.get("numpy")
    before = torch.get_rng_state(), random.getstate()
    of_numpy = numpy.random.get_state() if numpy is not None else None
    torch.default_generator.manual_seed(seed)
    random._inst.seed(seed)
    if numpy is not None:
        numpy.random.mtrand._rand.seed(seed % 2**32)
    try:
        yield
    finally:
        torch.set_rng_state(before[0])
        random.setstate(before[1])
        if numpy is not None:
            numpy.random.set_state(of_numpy)


def _switch_dropout_off(functional: Any) -> None:
    for name in DROPOUTS:
        if hasattr(functional, name):
            setattr(functional, name, _without_dropping(getattr(functional, name)))
    attention = functional.scaled_dot_product_attention

    def scaled_dot_product_attention(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        return attention(query, key, value, attn_mask, 0.0, *args, **kwargs)

    functional.scaled_dot_product_attention = scaled_dot_product_attention


def _draw_in_plain_order(torch: Any) -> None:
    """TorchScript knows torch's own functions alone, and keeps drawing as they do."""
    own = {name: inspect.unwrap(getattr(torch, name)) for name in LIKE}  # also if pinned before
    ours = {name: _in_plain_order(torch, original) for name, original in own.items()}
    vars(torch).update(ours)
    script = torch.jit.script

    @functools.wraps(script)
    def scripting(*args: Any, **kwargs: Any) -> Any:
        vars(torch).update(own)
        if len(args) < 3:  # names in a class are looked up where it is scripted: not here
            kwargs["_frames_up"] = kwargs.get("_frames_up", 0) + 1
        try:
            return script(*args, **kwargs)
        finally:
            vars(torch).update(ours)

    torch.jit.script = scripting
    when_imported("torch._dynamo.trace_rules", lambda rules: _tell_dynamo(rules, own))


def _tell_dynamo(rules: Any, own: dict[str, Any]) -> None:
    """It lists torch's functions by their names when it first compiles, which may be after this:
    then it would break its graphs at torch's own, and take ours for those."""
    load, listed = rules.load_object, {f"torch.{name}": known for name, known in own.items()}
    rules.load_object = lambda name: listed.get(name) or load(name)


def _in_plain_order(torch: Any, original: Callable[..., Any]) -> Callable[..., Any]:
    """Numbers are drawn as they come to lie, so channels-last noise would be another noise.

    So would noise in 16 bits, which is drawn from other numbers: it is rounded from 32. Only where
    it has no end; a number below 1 could be rounded to 1. Dynamo must look into it: what it takes
    for torch's own it also finds in its cache.
    """
    as_it_is, low = torch.preserve_format, (torch.bfloat16, torch.float16)
    transforms = torch._C._functorch.peek_interpreter_stack
    is_endless = original.__name__ == "randn_like"

    @functools.wraps(original)
    def like(*args: Any, **kwargs: Any) -> Any:
        input: Any = args[0] if args else kwargs.get("input")
        is_plain = isinstance(input, torch.Tensor) and input.layout is torch.strided
        is_free = kwargs.get("memory_format", as_it_is) is as_it_is
        # Dynamo says of the transforms that there are some, always.
        is_inside = not torch.compiler.is_compiling() and transforms() is not None
        if not is_plain or not is_free or is_inside:
            return original(*args, **kwargs)
        dtype = kwargs.get("dtype") or input.dtype
        is_rounded = is_endless and dtype in low
        if input.is_contiguous() and not is_rounded:
            return original(*args, **kwargs)
        how = {**kwargs, "memory_format": torch.contiguous_format}
        drawn = original(*args, **({**how, "dtype": torch.float32} if is_rounded else how))
        laid = torch.empty_like(input, dtype=dtype, device=drawn.device)
        return laid.copy_(drawn.detach()).requires_grad_(drawn.requires_grad)

    return like


def _without_dropping(original: Callable[..., Any]) -> Callable[..., Any]:
    def dropout(input: Any, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        return original(input, p, False, inplace)

    return dropout
