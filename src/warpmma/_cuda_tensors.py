"""Tensors that code creates on "cuda", kept on the CPU: how they are marked, and what they report.

The rules:

1. A tensor is *on cuda* if its storage carries a mark. Memory is the CPU's; the mark is all that differs.
2. A function of PyTorch that is given the device "cuda", "cuda:N", `torch.device("cuda", N)` or, as `device=` and in
   `to` and `cuda`, an integer, gets the CPU's; what it returns is on cuda. One that is given another device returns
   what is not.
3. What a function makes without being given a device is on cuda if one of its tensors is. What shares its storage with
   one of its tensors stays where that is.
4. From one place to the other everything is copied (`to`, `cuda`, `cpu`, `as_tensor`), as between two memories; within
   one, nothing is.
5. `device`, `is_cuda`, `is_cpu` and `get_device` answer by the mark, so that code which asks takes the path of a GPU.
   In C++ the CPU's tensor is what it is: nothing is computed otherwise.
6. Gradients are made in C++, without a mark: what a tensor on cuda has as `grad`, and what a backward function is
   given, is on cuda.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

_CUDA = re.compile(r"cuda(:\d+)?")
_MARK = "warpmma_on_cuda"
_NOT_GIVEN = object()


def is_cuda_device(x: Any) -> bool:
    """Return whether something names a device of CUDA: a text or a `torch.device`."""
    import torch

    return x.type == "cuda" if isinstance(x, torch.device) else isinstance(x, str) and bool(_CUDA.fullmatch(x))


def GENUINE() -> Any:
    """Return a context in which tensors answer as PyTorch has them."""
    import torch

    return torch._C.DisableTorchFunction()


def on_cuda(x: Any) -> bool:
    """Return whether a tensor is on cuda (rule 1), asked inside `GENUINE` or of a function that PyTorch overrides."""
    storage = _storage(x)
    return storage is not None and hasattr(storage, _MARK)


def put_on_cuda(x: Any) -> Any:
    """Mark a tensor, and return it."""
    storage = _storage(x)
    if storage is not None:
        setattr(storage, _MARK, True)
    return x


def _storage(x: Any) -> Any:
    """Return a tensor's storage in this process's memory; None without one, as for a sparse tensor."""
    try:
        return x.untyped_storage() if x.device.type == "cpu" else None
    except (NotImplementedError, RuntimeError):
        return None


def _tensors(x: Any) -> Iterator[Any]:
    """Return the tensors among arguments or results, those in tuples and lists too."""
    import torch

    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, tuple | list):
        for y in x:
            yield from _tensors(y)


def _on_cpu(x: Any) -> Any:
    """Return an argument, the CPU in place of a device of CUDA."""
    return "cpu" if is_cuda_device(x) else x


def _marked_results(results: Any, given: Iterable[Any], place: bool | None) -> None:
    """Mark the results of a function: by the device that it was given, or by rule 3."""
    tensors = list(given)
    if not (any(map(on_cuda, tensors)) if place is None else place):
        return
    known = {storage._cdata for x in tensors if (storage := _storage(x)) is not None}
    for x in _tensors(results):
        storage = _storage(x)
        if storage is not None and storage._cdata not in known:
            setattr(storage, _MARK, True)


def _moved(x: Any, made: Any, place: bool) -> Any:
    """Rule 4: what was made of a tensor for a place, copied if it is still the memory of the other."""
    if on_cuda(x) != place and _storage(made) is not None and _storage(made)._cdata == _storage(x)._cdata:
        made = made.clone()
    return put_on_cuda(made) if place else made


def _to(x: Any, *args: Any, **options: Any) -> Any:
    import torch

    first = args[0] if args else options.get("other", options.get("device"))
    if isinstance(first, torch.Tensor):
        place = on_cuda(first)
    elif isinstance(first, torch.device | str) or (isinstance(first, int) and not isinstance(first, bool)):
        place = is_cuda_device(first) or isinstance(first, int)
    else:
        place = is_cuda_device(options["device"]) if options.get("device") is not None else on_cuda(x)
    if isinstance(first, int) and args:
        args = ("cpu", *args[1:])
    options = {name: _device_of(name, value) for name, value in options.items()}
    return _moved(x, x.to(*map(_on_cpu, args), **options), place)


def _device_of(name: str, x: Any) -> Any:
    return "cpu" if name == "device" and isinstance(x, int) and not isinstance(x, bool) else _on_cpu(x)


def _as_tensor(make: Callable[..., Any]) -> Callable[..., Any]:
    """Return `as_tensor` or `asarray`, which share memory with what they are given where they can."""

    def made(data: Any, *args: Any, **options: Any) -> Any:
        import torch

        device = options.get("device", next((x for x in args if isinstance(x, torch.device | str)), None))
        result = make(data, *map(_on_cpu, args), **{name: _device_of(name, x) for name, x in options.items()})
        place = on_cuda(data) if device is None and isinstance(data, torch.Tensor) else is_cuda_device(device)
        if isinstance(data, torch.Tensor):
            return _moved(data, result, place)
        return put_on_cuda(result.clone()) if place else result

    return made


def _answers() -> dict[Any, Callable[..., Any]]:
    """Return the replacements of PyTorch's functions."""
    import torch

    tensor: Any = torch.Tensor
    cuda = torch.device("cuda", 0)
    return {
        tensor.device.__get__: lambda x, *_: cuda if on_cuda(x) else x.device,
        tensor.is_cuda.__get__: lambda x, *_: on_cuda(x),
        tensor.is_cpu.__get__: lambda x, *_: x.is_cpu and not on_cuda(x),
        tensor.get_device: lambda x: 0 if on_cuda(x) else x.get_device(),
        tensor.cuda: lambda x, *_, memory_format=torch.preserve_format, **__: _moved(
            x, x.contiguous(memory_format=memory_format) if memory_format is not torch.preserve_format else x, True
        ),
        tensor.cpu: lambda x, **options: _moved(x, x.cpu(**options), False),
        tensor.to: _to,
        tensor.pin_memory: lambda x, *_, **__: x,
        tensor.record_stream: lambda x, stream: None,
        torch.as_tensor: _as_tensor(torch.as_tensor),
        torch.asarray: _as_tensor(torch.asarray),
    }


@cache
def tensor_mode() -> Any:
    """Return the class of contexts in which "cuda" is the CPU for functions of PyTorch."""
    import torch
    from torch.utils._device import DeviceContext, _device_constructors

    overrides: Any = torch.overrides
    mode: type[Any] = overrides.TorchFunctionMode

    answers, constructors, backward = _answers(), _device_constructors(), torch.Tensor.backward
    saying = {torch.device, torch._C._nn._parse_to}  # they return which device was meant, and make nothing there

    class CudaTensors(mode):  # type: ignore[misc]
        """Answers by the rules."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            options = dict(kwargs or {})
            if func is backward:  # runs code of users, for which all of this holds
                with self:
                    return torch.autograd.backward(*args, **_renamed(options))
            if func in saying:
                return func(*args, **options)
            if func in answers:
                return answers[func](*args, **options)
            device = options.get("device", _NOT_GIVEN)
            if device is _NOT_GIVEN or device is None:
                device = next((x for x in args if isinstance(x, torch.device) or is_cuda_device(x)), _NOT_GIVEN)
            if device is _NOT_GIVEN and func in constructors and _default_is_cuda():
                device = options["device"] = "cuda"
            place = None if device is _NOT_GIVEN else isinstance(device, int) or is_cuda_device(device)
            given = list(_tensors((*args, *options.values())))
            results = func(*map(_on_cpu, args), **{name: _device_of(name, x) for name, x in options.items()})
            _marked_results(results, given, place)
            return results

    def _default_is_cuda() -> bool:
        stack = overrides._get_current_function_mode_stack()
        return any(isinstance(x, DeviceContext) and x.device.type == "cuda" for x in stack)

    return CudaTensors


def _renamed(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of `Tensor.backward` as `torch.autograd.backward` calls them."""
    return {"grad_tensors" if name == "gradient" else name: x for name, x in options.items()}
