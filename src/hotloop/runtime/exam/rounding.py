"""The yardstick: the same step with every result disturbed in one bit of its mantissa.

How far gradients move when each operation is rounded otherwise depends on the model, and only the
model can tell. So the job's own step is repeated with noise of the size of one rounding: in the
last bit for other orders of summation, in bit 7 for bfloat16. Noise rather than rounding, because
rounding what is rounded already would change nothing.
"""

from __future__ import annotations

from typing import Any


class Rounding:
    def __init__(self, torch: Any, bits: int) -> None:
        self._torch = torch
        self._size = 2.0**-bits
        self._mode: Any = None
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
            self._mode = _mode(self._torch, self._disturbed)
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

    def _generator(self, device: Any) -> Any:
        """Our own: the script's random numbers stay as they are."""
        known = self._generators.get(str(device))
        if known is None:
            known = self._torch.Generator(device=device)
            known.manual_seed(0)
            self._generators[str(device)] = known
        return known


def _mode(torch: Any, disturbed: Any) -> Any:
    """Sees every call into torch that the script makes while it is active."""

    class Disturbing(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(
            self, function: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            result = function(*args, **(kwargs or {}))
            if torch.is_grad_enabled() and not torch.compiler.is_compiling():
                return _each(torch, result, _memory(torch, args), disturbed)
            return result

    return Disturbing()


def _each(torch: Any, result: Any, known: set[int], disturbed: Any) -> Any:
    """New results of learned weights; neither data nor views nor what was changed in place."""
    if type(result) in (tuple, list):
        return type(result)(_each(torch, part, known, disturbed) for part in result)
    if not _computes_plainly(torch, result) or not result.requires_grad or result.is_leaf:
        return result
    if not result.is_floating_point() or result.layout is not torch.strided:
        return result
    # A tensor of a kind of its own is always a view, of a plain one that nobody sees.
    is_view = result._is_view() and type(result) is torch.Tensor
    if is_view or result.untyped_storage().data_ptr() in known:
        return result
    return disturbed(result)


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
