"""The yardstick: the same step with every result disturbed in one bit of its mantissa.

How far gradients move when each operation is rounded otherwise depends on the model, and only the
model can tell. So the job's own step is repeated with noise of the size of one rounding: in the
last bit for other orders of summation, in bit 7 for bfloat16. Noise rather than rounding, because
rounding what is rounded already would change nothing.

What a model keeps from step to step it mostly computes where nothing is differentiated: an average
of codes, the largest singular value of a weight. There products are disturbed, and only inside a
model that learns: what a script prepares its data with must be seen to be the same.

A narrower format rounds weights and data as well, before a product is computed of them. That is one
error for all samples and pixels, which noise on their results averages out. So these are rounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NARROWER = 23
"""Formats of fewer bits are not the job's own."""
PRODUCTS = frozenset(
    (
        *("matmul", "__matmul__", "__rmatmul__", "mm", "bmm", "mv", "einsum", "linear"),
        *("addmm", "addmv", "addbmm", "baddbmm", "chain_matmul", "multi_dot"),
        *("conv1d", "conv2d", "conv3d"),
        *("conv_transpose1d", "conv_transpose2d", "conv_transpose3d"),
        "scaled_dot_product_attention",
        *("lstm", "gru", "rnn_tanh", "rnn_relu"),
        *("lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"),
    )
)
"""torch's functions that compute in the narrower format where one is allowed."""
MADE_OF_OTHERS = "multi_head_attention_forward"
"""One that torch shows as a whole, and that is many of these."""


class Rounding:
    def __init__(self, torch: Any, bits: int) -> None:
        self._torch = torch
        self._bits = bits
        self._size = 2.0**-bits
        self._mode: Any = None
        self.inside_learning = False
        """A model, called with gradients on."""
        self._exact: list[tuple[Any, Any]] = []
        self._generators: dict[str, Any] = {}

    def begin(self, weights: list[Any], in_weights: bool) -> None:
        """Until `end`. Inside compiled code nothing can be disturbed: there the weights are."""
        if in_weights:
            with self._torch.no_grad():
                for weight in weights:
                    if weight.is_floating_point():
                        # On the host: a job may need all the memory its device has.
                        self._exact.append((weight, weight.detach().to("cpu", copy=True)))
                        weight.copy_(self._disturbed(weight))
        else:
            operands = self._rounded if self._bits < NARROWER else None
            self._mode = _mode(self._torch, self._disturbed, operands, self._reaches)
            self._mode.__enter__()

    def before_step(self) -> None:
        """The update itself starts from the exact weights."""
        with self._torch.no_grad():
            while self._exact:
                weight, exact = self._exact.pop()
                weight.copy_(exact)

    def end(self) -> None:
        self.before_step()
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
            self._mode = None

    def _reaches(self, name: str) -> bool:
        """Whether such an operation is disturbed here."""
        if self._torch.is_grad_enabled():
            return True
        return self.inside_learning and name in PRODUCTS

    def _disturbed(self, tensor: Any) -> Any:
        """Differentiable: the gradient on its way back is disturbed as well."""
        torch = self._torch
        wide = torch.float64 if tensor.dtype is torch.float64 else torch.float32
        noise = torch.rand(
            tensor.shape,
            generator=self._generator(tensor.device),
            dtype=wide,
            device=tensor.device,
        )
        return (tensor.to(wide) * (1 + self._size * (2 * noise - 1))).to(tensor.dtype)

    def _rounded(self, tensor: Any) -> Any:
        """What is there before a product is: a weight, a part of one, or data. What was computed is
        disturbed already. The gradient passes as it is."""
        torch = self._torch
        source = tensor._base if tensor._is_view() else tensor
        if not source.is_leaf or tensor.dtype not in (torch.float32, torch.float64):
            return tensor
        exact = tensor.detach()
        mantissa, exponent = torch.frexp(exact)
        scale = 2.0 ** (self._bits + 1)
        narrow = torch.ldexp((mantissa * scale).round() / scale, exponent)
        return tensor + torch.where(narrow.isfinite(), narrow - exact, 0.0)

    def _generator(self, device: Any) -> Any:
        """Our own: the script's random numbers stay as they are."""
        known = self._generators.get(str(device))
        if known is None:
            known = self._torch.Generator(device=device)
            known.manual_seed(0)
            self._generators[str(device)] = known
        return known


def _mode(torch: Any, disturbed: Any, rounded: Any, reaches: Any) -> Any:
    """Sees every call into torch that the script makes while it is active."""

    class Disturbing(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            name = getattr(function, "__name__", "")
            is_ours = not torch.compiler.is_compiling() and reaches(name)
            if not is_ours or (kwargs and kwargs.get("out") is not None):
                return function(*args, **(kwargs or {}))
            if name == MADE_OF_OTHERS:
                with _looked_into(torch.nn.functional), self:
                    return function(*args, **(kwargs or {}))
            known = _memory(torch, args)
            if rounded is not None and name in PRODUCTS:
                args, kwargs = _operands(torch, args, rounded), _operands(torch, kwargs, rounded)
            return _each(torch, function(*args, **(kwargs or {})), known, disturbed)

    return Disturbing()


@contextmanager
def _looked_into(functional: Any) -> Iterator[None]:
    """Its functions ask whether somebody stands in for them, who would be asked again and again."""
    asked = functional.has_torch_function
    functional.has_torch_function = lambda _: False
    try:
        yield
    finally:
        functional.has_torch_function = asked


def _each(torch: Any, result: Any, known: set[int], disturbed: Any) -> Any:
    """New results of learned weights; neither data nor views nor what was changed in place."""
    if type(result) in (tuple, list):
        return type(result)(_each(torch, part, known, disturbed) for part in result)
    if not _computes_plainly(torch, result):
        return result
    if torch.is_grad_enabled() and (not result.requires_grad or result.is_leaf):
        return result
    if not result.is_floating_point() or result.layout is not torch.strided:
        return result
    # A tensor of a kind of its own is always a view, of a plain one that nobody sees.
    is_view = result._is_view() and type(result) is torch.Tensor
    if is_view or result.untyped_storage().data_ptr() in known:
        return result
    return disturbed(result)


def _operands(torch: Any, given: Any, rounded: Any) -> Any:
    if type(given) in (tuple, list):
        return type(given)(_operands(torch, part, rounded) for part in given)
    if type(given) is dict:
        return {name: _operands(torch, part, rounded) for name, part in given.items()}
    is_plain = _computes_plainly(torch, given) and given.layout is torch.strided
    return rounded(given) if is_plain else given


def _computes_plainly(torch: Any, result: Any) -> bool:
    """Also a tensor that carries something along, as a medical image does its place in space."""
    plain = torch.Tensor.__torch_dispatch__
    return isinstance(result, torch.Tensor) and type(result).__torch_dispatch__ is plain


def _memory(torch: Any, args: Any) -> set[int]:
    flat = [part for arg in args for part in (arg if isinstance(arg, list | tuple) else (arg,))]
    return {
        part.untyped_storage().data_ptr()
        for part in flat
        if isinstance(part, torch.Tensor) and part.layout is torch.strided
    }
