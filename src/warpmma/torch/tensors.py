"""PyTorch, imported when needed; tensors as arrays without a copy, and arrays as tensors."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import numpy as np

from .._arrays import as_array
from ..errors import OperandError, UnsupportedError
from ..formats import FORMATS

TYPES = MappingProxyType({
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2", "int8": "s8",
})  # fmt: skip
"""PTX type of each type of PyTorch's that products take; `float32` is of `fma`, or tf32 to a matrix instruction."""

_OUTPUTS = ("float32", "float16", "bfloat16", "float64", "int32", "float8_e4m3fn", "float8_e5m2")


def pytorch() -> Any:
    """Return the module `torch`; raise `UnsupportedError` if it is not installed."""
    try:
        import torch
    except ImportError as error:
        raise UnsupportedError(f"warpmma.torch needs PyTorch, pip install torch: {error}") from None
    if not hasattr(torch, "Tensor"):  # a folder of that name on the path
        raise UnsupportedError(f"warpmma.torch needs PyTorch, pip install torch: {torch!r} is another module")
    return torch


def dtype_name(dtype: object) -> str:
    """Return the name of a type of PyTorch's, without the module."""
    return str(dtype).removeprefix("torch.")


def type_of(x: Any, name: str) -> str:
    """Return the PTX type of a factor's elements, or raise `OperandError`."""
    found = TYPES.get(dtype_name(x.dtype))
    if found is None:
        known = ", ".join(TYPES)
        raise OperandError(f"{name} is {dtype_name(x.dtype)}, which no product takes; expected one of {known}")
    return found


def dtype_for(name: str) -> Any:
    """Return PyTorch's type of a format's numbers."""
    return getattr(pytorch(), str(FORMATS[name].dtype))


def array_of(x: Any, name: str) -> Any:
    """Read a tensor in place: an array, or of a tensor on an NVIDIA GPU itself; `OperandError` for anything else."""
    torch = pytorch()
    if not isinstance(x, torch.Tensor):
        raise OperandError(f"{name} is {type(x).__name__}; expected a tensor of PyTorch")
    if x.device.type == "meta":
        raise OperandError(f"{name} is on the device meta, where tensors have no numbers; give one on the CPU")
    if x.device.type not in ("cpu", "cuda"):
        raise OperandError(f"{name} is on {x.device}; expected the CPU or an NVIDIA GPU: give its copy there, .cpu()")
    if x.layout is not torch.strided:
        raise OperandError(f"{name} is {dtype_name(x.layout)}; expected a dense tensor: .to_dense()")
    if torch._C._functorch.is_functorch_wrapped_tensor(x):
        raise UnsupportedError(f"{name} is inside torch.func; take torch.matmul there, in arithmetic(...)")
    x = x.detach().resolve_conj().resolve_neg()
    return as_array(x, name) if x.device.type == "cpu" else x


def tensor_of(x: Any) -> Any:
    """Return an array as a tensor on its memory; a tensor as it is."""
    torch = pytorch()
    if isinstance(x, torch.Tensor):
        return x
    if not x.flags.writeable:
        x = x.copy()
    if str(x.dtype) not in _OUTPUTS:
        raise OperandError(
            f"PyTorch has no tensor type for a result of {x.dtype}; expected one of {', '.join(_OUTPUTS)}"
        )
    same = np.ascontiguousarray(x).view(f"i{x.itemsize}")
    return torch.from_numpy(same.reshape(x.shape)).view(getattr(torch, str(x.dtype)))
