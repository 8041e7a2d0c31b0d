"""Finding the modules that the script itself calls, and watching those alone.

Watching every module would cost microseconds a call, hundreds of times a step, and would split the
graphs that torch.compile captures. So for the first steps `nn.Module.__call__` is replaced, only
between root calls and never during one; afterwards only the classes of the roots stay patched.
Never an instance: a patched instance cannot be pickled, and its deep copies share weights.

Discovery begins with the first backward pass, unless somebody must hear of the very first call.
Who asks for it hears of models, too, that join in after it has ended: see `late_roots`.
"""

from __future__ import annotations

import functools
import threading
import weakref
from time import perf_counter_ns
from typing import Any

from hotloop.runtime.late_roots import awaited
from hotloop.runtime.patches import Patches
from hotloop.seams import Seam, Seams

DISCOVERY_STEPS = 5
MOST_VAIN_LOOKS = 5
"""For models that are yet to be called: each goes over all objects there are."""


class RootFinder:
    def __init__(self, torch: Any, seams: Seams) -> None:
        self._torch = torch
        self.is_compiling = torch.compiler.is_compiling
        self._inside_backward = torch._C._current_graph_task_id
        self._seams = seams
        self._module = torch.nn.Module
        self._pristine: Any = None
        self._thread = threading.get_ident()
        self._loading = False
        self._met_while_loading = False
        self._inside = False
        self._passes = 0
        self._optimizer_built = False
        self._listening = False
        self._settled = False
        self.searching = False
        self.steps = 0
        """Steps that discovery has disturbed so far."""
        self.roots: list[weakref.ref[Any]] = []
        self._optimizers: list[weakref.ref[Any]] = []
        """Built before discovery has ended."""
        self._vain_looks = 0
        self._late: set[type] = set()
        """Classes of models that are yet to be called."""

    def attach(self, patches: Patches) -> None:
        self._patches = patches
        patches.on_restore(self._pause)
        if self._settled:
            self._watch_classes()  # attached again, after a pause
        elif self.searching:
            self._open()
        elif self._seams.model.is_used and not self._listening:
            self._listening = True
            self._seams.optimizer.before.append(self._build)
            if self._seams.late_model.is_used:
                self._seams.optimizer.after.append(self._built)
            self._seams.backward.before.append(self._begin)
            self._seams.step.after.append(self._count_step)
            self._seams.batch.before.append(self._load)
            self._seams.batch.after.append(self._loaded)
            if self._seams.model.at_once:
                self._search()
        if self.searching and not self._passes:
            patches.replace(self._torch, "compile", self._apart(self._torch.compile))

    def _pause(self) -> None:
        if self.searching:
            self._close()

    def _build(self, args: Any, kwargs: Any) -> None:
        self._optimizer_built = True

    def _built(self, args: Any, result: Any, began: int) -> None:
        if self._settled:
            self._await_others_of(args[0])
        else:
            self._optimizers.append(weakref.ref(args[0]))

    def _load(self, args: Any, kwargs: Any) -> None:
        # What runs inside the loader (torchvision's transforms are modules too) is no root. A model
        # that is called while another thread loads ahead is one.
        if threading.get_ident() == self._thread:
            self._loading = True

    def _loaded(self, args: Any, result: Any, began: int) -> None:
        if threading.get_ident() == self._thread:
            self._loading = False

    def _begin(self, args: Any, kwargs: Any) -> None:
        """At the first backward pass: by then the script has compiled what it compiles.

        `torch.compile(model)` keeps hold of `model.__call__`; ours must not be what it finds.
        """
        self._passes += 1
        if self._passes == 1 and not self.searching:
            self._search()
        elif self._passes > DISCOVERY_STEPS and self.roots and not self._optimizer_built:
            self._settle()  # parameters are updated by hand: each pass is a step

    def _search(self) -> None:
        self.searching = True
        self._pristine = self._module.__call__  # a library may have put its own there by now
        self._open()

    def _apart(self, compile: Any) -> Any:
        """torch.compile, which finds no call of ours in a model."""

        @functools.wraps(compile)
        def apart(*args: Any, **kwargs: Any) -> Any:
            is_open = self.searching and not self._inside
            if is_open:
                self._close()
            try:
                return compile(*args, **kwargs)
            finally:
                if is_open:
                    self._open()

        return apart

    def _count_step(self, args: Any, result: Any, began: int) -> None:
        if self.searching:
            self.steps += 1
            if self.steps >= DISCOVERY_STEPS:
                self._settle()

    def _settle(self) -> None:
        self.searching = False
        self._settled = True
        self._close()
        self._seams.optimizer.before.remove(self._build)
        self._seams.backward.before.remove(self._begin)
        self._seams.step.after.remove(self._count_step)
        if not self._met_while_loading:
            self._seams.batch.before.remove(self._load)
            self._seams.batch.after.remove(self._loaded)
        self._watch_classes()
        for known in self._optimizers:
            if (optimizer := known()) is not None:
                self._await_others_of(optimizer)
        self._optimizers.clear()

    def _await_others_of(self, optimizer: Any) -> None:
        """A script may build one for every batch, of weights that no module has."""
        if self._vain_looks >= MOST_VAIN_LOOKS:
            return
        roots = [root for known in self.roots if (root := known()) is not None]
        found = awaited(self._torch, optimizer, roots)
        if found is None:
            return
        self._vain_looks += not found
        new = {type(one) for one in found} - self._late - {type(root) for root in roots}
        self._late |= new
        self._watch_late(new)

    def _open(self) -> None:
        finder = self

        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            return finder._call(module, args, kwargs)

        self._module.__call__ = __call__

    def _close(self) -> None:
        self._module.__call__ = self._pristine

    def _call(self, module: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.is_compiling() or not self._is_root_call(module):
            return self._pristine(module, *args, **kwargs)
        if not self._is_known(module):
            self.roots.append(weakref.ref(module))
        self._close()
        try:
            return self._observe(self._pristine, module, args, kwargs)
        finally:
            if self.searching:
                self._open()

    def _is_root_call(self, module: Any) -> bool:
        """Whether the script itself calls a model. Criteria and transforms have no parameters."""
        if self._loading:
            self._met_while_loading = True
            return False
        if self._inside or threading.get_ident() != self._thread:
            return False
        if self._inside_backward() != -1:
            return False  # a checkpointed block runs once more, in the midst of the backward pass
        if self._is_known(module):
            return True
        # Calling it is how torch reads a weight that is computed of others: by its norm, say.
        is_weight = isinstance(module, self._torch.nn.utils.parametrize.ParametrizationList)
        return not is_weight and next(module.parameters(), None) is not None

    def _is_known(self, module: Any) -> bool:
        for known in self.roots:  # noqa: SIM110 - no generator: this runs at every root call
            if known() is module:
                return True
        return False

    def _watch_classes(self) -> None:
        for kind in {type(root) for known in self.roots if (root := known()) is not None}:
            self._patches.replace(kind, "__call__", self._outermost(kind.__call__))
        self._watch_late(self._late)

    def _watch_late(self, kinds: set[type]) -> None:
        for kind in kinds:
            call: Any = kind.__call__
            watched = self._outermost(call, self._seams.late_model)
            self._patches.replace(kind, "__call__", watched)

    def _outermost(self, original: Any, seam: Seam | None = None) -> Any:
        """A root's class may also stand inside a root: a Sequential in a Sequential.

        Taking the patch away during a call would spare the inner ones a look, but changing a class
        again and again makes Python give up caching its attributes, for good.
        """
        observe, is_compiling = self._observe, self.is_compiling

        def __call__(module: Any, *args: Any, **kwargs: Any) -> Any:
            if self._inside or is_compiling():  # what is compiled only now finds ours
                return original(module, *args, **kwargs)
            return observe(original, module, args, kwargs, seam)

        return __call__

    def _observe(
        self, original: Any, module: Any, args: Any, kwargs: Any, seam: Seam | None = None
    ) -> Any:
        """One call of a root, told to who listens; calls of other roots inside it are not."""
        if not self._is_root_call(module):
            return original(module, *args, **kwargs)
        seam = seam or self._seams.model
        self._inside = True
        for tell in seam.before:
            tell((module, *args), kwargs)
        result = None
        began = perf_counter_ns()
        try:
            result = original(module, *args, **kwargs)
            return result
        finally:
            self._inside = False
            for tell_after in seam.after:
                tell_after((module, *args, *kwargs.values()), result, began)
