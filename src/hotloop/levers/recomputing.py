"""Blocks of one class that keep their inputs alone, and are run once more in the backward pass.

The class's `forward` is replaced, never an instance's: models can be pickled and copied as ever,
hooks of the script's own run once, and torch.compile traces a checkpoint as its author would have
written it. A copy of a block is not among those that were chosen.
"""

from __future__ import annotations

import functools
import importlib
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

PLAIN = int, float, bool, str, type(None)


class Recomputing:
    """Some of the blocks of a class, from now on."""

    def __init__(self, torch: Any, kind: type) -> None:
        self.chosen = self.calls = self.recomputed = self.again = 0
        """Blocks that are meant; times that one was run and kept its inputs alone, that one was run
        once more, and that somebody else did so, who therefore checkpoints them already."""
        self.blocks: set[int] = set()
        """Which have been run once more."""
        self.problem = ""
        """Why its blocks are left alone after all."""
        self._torch = torch
        self._chosen: set[int] = set()
        self._scouts: set[int] = set()
        self._ran_plainly: set[int] = set()
        self._inside_backward = torch._C._current_graph_task_id
        _replace_forward(kind, self._forward)

    def choose(self, blocks: Iterable[Any], scout: Any) -> None:
        """`scout`: one of them that is first run as ever, to see what its kind does besides."""
        for block in blocks:
            self.chosen += 1
            self._chosen.add(id(block))
            weakref.finalize(block, self._chosen.discard, id(block)).atexit = False
        self._scouts.add(id(scout))

    def _forward(self, original: Callable[..., Any]) -> Callable[..., Any]:
        torch, chosen, scouts = self._torch, self._chosen, self._scouts
        checkpoint = importlib.import_module("torch.utils.checkpoint").checkpoint
        grad_enabled, is_compiling = torch.is_grad_enabled, torch.compiler.is_compiling

        @functools.wraps(original)
        def forward(module: Any, *args: Any, **kwargs: Any) -> Any:
            if id(module) not in chosen or not grad_enabled():
                return original(module, *args, **kwargs)
            if is_compiling():  # traced: what is counted would be part of the graph

                def traced(*inputs: Any) -> Any:
                    return original(module, *inputs, **kwargs)

                return checkpoint(traced, *args, use_reentrant=False)
            if id(module) in scouts:
                return self._scout(original, module, args, kwargs)
            if self._is_run_again(module):
                return original(module, *args, **kwargs)
            return checkpoint(self._run(original, module, kwargs), *args, use_reentrant=False)

        return forward

    def _is_run_again(self, module: Any) -> bool:
        """By a checkpoint of the script's own, of what ran plainly: so it must be again."""
        if self._inside_backward() == -1:
            self._ran_plainly.discard(id(module))
            return False
        self.again += 1
        return id(module) in self._ran_plainly

    def _run(self, original: Any, module: Any, kwargs: dict[str, Any]) -> Callable[..., Any]:
        """Called in the forward pass, and once more in the backward pass."""

        def run(*inputs: Any) -> Any:
            if self._inside_backward() == -1:
                self.calls += 1
                return original(module, *inputs, **kwargs)
            self.recomputed += 1
            self.blocks.add(id(module))
            with _Kept(self._torch, module):
                return original(module, *inputs, **kwargs)

        return run

    def _scout(self, original: Any, module: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        self._scouts.discard(id(module))
        self._ran_plainly.add(id(module))
        before = dict(_state(self._torch, module))
        result = original(module, *args, **kwargs)
        after = dict(_state(self._torch, module))
        for place, then in before.items():
            if then is not None and after.get(place) != then:
                self.problem = f"the model's blocks remember {place[1]} from one call to the next"
                self._chosen.clear()
                self.chosen = 0
        return result


class _Kept:
    """Running statistics as they were: what is run once more has been counted already."""

    def __init__(self, torch: Any, module: Any) -> None:
        self._torch = torch
        self._were = [
            (buffer, buffer.clone())
            for part in module.modules()
            if _is_norm(torch, part) and part.training
            for buffer in part.buffers(recurse=False)
        ]

    def __enter__(self) -> None: ...

    def __exit__(self, *raised: object) -> None:
        with self._torch.no_grad():
            for buffer, was in self._were:
                buffer.copy_(was)


def _state(torch: Any, module: Any) -> Iterator[tuple[tuple[int, str], object]]:
    """What a call could change besides its result. None: what is not there yet, such as a cache."""
    for part in module.modules():
        if not _is_norm(torch, part):
            for name, buffer in part.named_buffers(recurse=False):
                yield (id(part), name), (id(buffer), _version(buffer))
        for name, value in vars(part).items():
            if not name.startswith("_") and isinstance(value, PLAIN):
                yield (id(part), name), value


def _version(buffer: Any) -> int:
    try:
        return int(buffer._version)
    except RuntimeError:  # of one that was made in inference mode
        return 0


def _is_norm(torch: Any, part: Any) -> bool:
    """One that keeps running statistics, on which nothing depends while it trains."""
    return isinstance(part, torch.nn.modules.batchnorm._NormBase)


def _replace_forward(kind: Any, replaced: Callable[[Callable[..., Any]], Any]) -> None:
    """A class may inherit a forward that was replaced already, for others of its kind."""
    found = kind.forward
    original = getattr(found, "hotloop_original", found)
    forward = replaced(original)
    forward.hotloop_original = original
    kind.forward = forward
