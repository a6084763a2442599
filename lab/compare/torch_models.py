"""Run models through `warpmma.torch.compile`, forward and backward: `python -m lab.compare.torch_models`.

Prints for each model its launches, instructions and seconds, and the largest difference from PyTorch's own results on
the CPU; needs PyTorch and Triton. Products are PyTorch's, except for models that ask for templates of Triton.

`--launches FILE` stores the launches with their memory for `python -m lab.compare.launches`, which repeats them on a
GPU and writes `replay.json`; an older driver takes the text with another `.version`, which `--version 9.0` writes.
`--compare replay.json` lists which of them left other bytes there.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import nn
from torch.nn import functional
from torch.utils import _pytree

import warpmma as wm
from lab.triton_programs.launching import Launched, watched
from lab.triton_programs.snapshots import memory, write

__all__ = ["CASES", "Case", "compiled", "eager", "error", "results"]

TEMPLATES = "max-autotune-no-cudagraphs"
"""The mode in which products are templates of Triton."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A model, the tensors that it is given, and options of `warpmma.torch.compile`."""

    make: Callable[[], tuple[Callable[..., Any], list[Any]]]
    mode: str | None = None
    error: float | None = 2e-6  # the largest difference from eager, of the largest number there; None: not compared
    options: Mapping[str, Any] = field(default_factory=dict)


class Attention(nn.Module):  # type: ignore[misc, unused-ignore]
    """Attention of several heads, of its parts."""

    def __init__(self, size: int, heads: int) -> None:
        super().__init__()
        self.into, self.out, self.heads = nn.Linear(size, 3 * size), nn.Linear(size, size), heads

    def forward(self, x: Any) -> Any:
        """Attend."""
        batch, length, size = x.shape
        q, k, v = self.into(x).view(batch, length, 3, self.heads, size // self.heads).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-1, -2) / (size // self.heads) ** 0.5, -1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, size))


class Transformer(nn.Module):  # type: ignore[misc, unused-ignore]
    """A block of a transformer."""

    def __init__(self, size: int = 64, heads: int = 4, drop: float = 0.0) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(size), nn.LayerNorm(size)
        self.attention, self.drop = Attention(size, heads), nn.Dropout(drop)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x: Any) -> Any:
        """Attend, then apply the network to each place."""
        x = x + self.drop(self.attention(self.first(x)))
        return x + self.drop(self.down(functional.gelu(self.up(self.second(x)))))


class Residual(nn.Module):  # type: ignore[misc, unused-ignore]
    """A block of a ResNet."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.one, self.two = (nn.Conv2d(channels, channels, 3, padding=1, bias=False) for _ in range(2))
        self.norm, self.other = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)

    def forward(self, x: Any) -> Any:
        """Convolve twice."""
        return functional.relu(x + self.other(self.two(functional.relu(self.norm(self.one(x))))))


def _random(*shape: int, dtype: Any = torch.float32, gradient: bool = True) -> Any:
    return torch.randn(*shape).to(dtype).requires_grad_(gradient)


def _of(model: Callable[..., Any], *shapes: tuple[int, ...], dtype: Any = torch.float32, **more: Any) -> Any:
    """Return what makes a function's case, of random tensors."""
    return lambda: (model, [_random(*shape, dtype=dtype, **more) for shape in shapes])


def _module(make: Callable[[], Any], *shape: int, dtype: Any = torch.float32) -> Any:
    """Return what makes a module's case, of a random tensor."""
    return lambda: (make().to(dtype), [_random(*shape, dtype=dtype)])


def _quantised(dtype: Any, largest: float) -> Callable[[Any], Any]:
    def quantise(x: Any) -> Any:
        scale = x.abs().amax(-1, keepdim=True).clamp_min(1e-12) / largest
        return (x / scale).to(dtype).view(torch.uint8), scale

    return quantise


def _indexed(model: Callable[..., Any], shape: tuple[int, ...], most: int, *places: int) -> Any:
    return lambda: (model, [_random(*shape), torch.randint(most, places)])


def _entropy(dtype: Any) -> tuple[Callable[..., Any], list[Any]]:
    return functional.cross_entropy, [_random(32, 100, dtype=dtype), torch.arange(32)]


def _small(*shape: int) -> Any:
    return lambda: (lambda x: (x // 3, x % 5, x >> 1, x * x, x.clamp(-9, 9)), [torch.randint(-999, 999, shape)])


def _adam() -> tuple[Callable[..., Any], list[Any]]:
    def steps(x: Any, gradient: Any, first: Any, second: Any) -> Any:
        for i in (1, 2):
            first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient * gradient
            x = 0.99 * x - 1e-3 * (first / (1 - 0.9**i)) / ((second / (1 - 0.999**i)).sqrt() + 1e-8)
        return x, first, second

    return steps, [_random(50, 20, gradient=False) for _ in range(3)] + [torch.rand(50, 20)]


def _cases() -> dict[str, Case]:
    f32, bf16, f16, f64 = torch.float32, torch.bfloat16, torch.float16, torch.float64
    found: dict[str, Case] = {}
    for name, dtype, most in (("f32", f32, 2e-6), ("bf16", bf16, 2e-2), ("f16", f16, 3e-3)):
        swiglu = _of(lambda x, w, v: functional.silu(x @ w) * (x @ v), (32, 64), (64, 48), (64, 48), dtype=dtype)
        found |= {
            f"transformer block, {name}": Case(make=_module(Transformer, 2, 16, 64, dtype=dtype), error=most),
            f"softmax, {name}": Case(make=_of(lambda x: x.softmax(-1), (24, 100), dtype=dtype), error=max(most, 1e-5)),
            f"long softmax, {name}": Case(make=_of(lambda x: torch.softmax(x, -1), (3, 5000), dtype=dtype), error=most),
            f"log softmax, {name}": Case(make=_of(lambda x: x.log_softmax(0), (70, 24), dtype=dtype), error=most),
            f"layer norm, {name}": Case(
                make=_module(lambda: nn.LayerNorm(200), 16, 200, dtype=dtype), error=max(most, 1e-5)
            ),
            f"long layer norm, {name}": Case(
                make=_module(lambda: nn.LayerNorm(3000), 4, 3000, dtype=dtype), error=most
            ),
            f"RMS norm, {name}": Case(make=_module(lambda: nn.RMSNorm(200), 16, 200, dtype=dtype), error=most),
            f"group norm, {name}": Case(make=_module(lambda: nn.GroupNorm(2, 8), 2, 8, 36, dtype=dtype), error=most),
            f"GELU, {name}": Case(make=_of(functional.gelu, (700,), dtype=dtype), error=most),
            f"SwiGLU, {name}": Case(make=swiglu, error=most),
            f"SwiGLU, templates, {name}": Case(make=swiglu, error=most, mode=TEMPLATES),
            f"batched products, templates, {name}": Case(
                make=_of(torch.bmm, (3, 40, 72), (3, 72, 56), dtype=dtype), error=most, mode=TEMPLATES,
            ),
            f"cross entropy, {name}": Case(make=partial(_entropy, dtype), error=most),
        }  # fmt: skip
    found |= {
        "transformer block, templates": Case(
            make=_module(Transformer, 2, 16, 64, dtype=f16), error=6e-3, mode=TEMPLATES
        ),
        "transformer block, dropout": Case(
            make=_module(lambda: Transformer(drop=0.2), 2, 16, 64), options={"fallback_random": True}
        ),
        "ResNet block": Case(make=_module(Residual, 2, 8, 12, 12)),
        "ResNet block, templates": Case(make=_module(lambda: Residual(16), 1, 16, 8, 8), mode=TEMPLATES),
        "convolution": Case(make=_module(lambda: nn.Conv2d(16, 32, 3), 1, 16, 10, 10), mode=TEMPLATES),
        "dropout, its own random numbers": Case(make=_module(lambda: nn.Dropout(0.3), 40, 100), error=None),
        "sort": Case(make=_of(lambda x: torch.sort(x, -1), (12, 60))),
        "sort of columns": Case(make=_of(lambda x: torch.sort(x, 0, descending=True), (32, 9), gradient=False)),
        "cumsum": Case(make=_of(lambda x: x.cumsum(-1), (16, 100))),
        "long cumsum": Case(make=_of(lambda x: x.cumsum(-1), (2, 5000))),
        "cumprod": Case(make=_of(lambda x: x.cumprod(-1), (16, 50), gradient=False)),
        "logcumsumexp": Case(make=_of(lambda x: x.logcumsumexp(-1), (16, 50), gradient=False)),
        "cummax": Case(make=_of(lambda x: x.cummax(-1), (16, 50), gradient=False)),
        "quantised to e4m3": Case(make=_of(_quantised(torch.float8_e4m3fn, 448), (16, 128), gradient=False)),
        "quantised to e5m2": Case(make=_of(_quantised(torch.float8_e5m2, 57344), (16, 128), gradient=False)),
        "variance": Case(make=_of(lambda x: torch.var_mean(x, -1), (12, 3000))),
        "sum": Case(make=_of(lambda x: x.sum(), (200, 300))),
        "sum, f64": Case(make=_of(lambda x: x.exp().sum(-1), (20, 30), dtype=f64), error=1e-14),
        "argmax": Case(make=_of(lambda x: (x.argmax(-1), x.amax(0)), (64, 300), gradient=False)),
        "any and all": Case(make=_of(lambda x: ((x > 2).any(-1), (x > -3).all(0)), (64, 300), gradient=False)),
        "functions": Case(make=_of(lambda x: x.erf() + (x.abs() + 1).lgamma() + x.sin() + x.tanh(), (1000,))),
        "integers": Case(make=_small(500)),
        "gather": Case(make=_indexed(lambda x, i: x[i], (50, 8), 50, 20)),
        # Not among the launches that were recorded on a GPU: its zeros were on the CPU then, which PyTorch refuses.
        "scatter": Case(make=_indexed(lambda x, i: x.new_zeros(20, 8).index_add(0, i, x), (50, 8), 20, 50)),
        "embedding": Case(make=lambda: (nn.Embedding(50, 32), [torch.randint(50, (4, 7))])),
        "average pooling": Case(make=_module(lambda: nn.AvgPool2d(2), 2, 4, 8, 8)),
        "maximum pooling": Case(make=_module(lambda: nn.MaxPool2d(2), 2, 4, 8, 8)),
        "upsampling": Case(make=_of(lambda x: functional.interpolate(x, scale_factor=2.0), (1, 3, 6, 6))),
        "transposed sum": Case(make=_of(lambda x, y: (x.t() + y).contiguous(), (70, 50), (50, 70))),
        "concatenated": Case(make=_of(lambda x, y: torch.cat([x * 2, y.relu()], 1), (12, 20), (12, 30))),
        "product, templates, f32": Case(make=_of(lambda x, w: (x @ w + 1).relu(), (60, 96), (96, 80)), mode=TEMPLATES),
        "Huber loss": Case(make=_of(functional.huber_loss, (40, 30), (40, 30))),
        "triangle": Case(make=_of(lambda x: x.tril().roll(3, 0).flip(1), (40, 30))),
        "padded": Case(make=_of(lambda x: functional.pad(x, (1, 2, 3, 0), mode="reflect"), (1, 2, 8, 9))),
        "products of f64": Case(make=_of(lambda x, y: torch.einsum("ij,ij->i", x, y), (30, 70), (30, 70), dtype=f64)),
        "steps of AdamW": Case(make=_adam, error=1e-5),
    }  # fmt: skip
    return found


CASES: Mapping[str, Case] = MappingProxyType(_cases())


def results(function: Callable[..., Any], args: list[Any]) -> list[Any]:
    """Return what a model gives, and the gradients of its arguments of a weighted sum of that."""
    torch.manual_seed(1)
    for x in args:
        x.grad = None
    found = _pytree.tree_leaves(function(*args))
    if differentiable := [x for x in found if x.requires_grad]:
        weighted = [
            (x.float() * torch.linspace(0.1, 1, x.numel(), device=x.device).view(x.shape)).sum() for x in differentiable
        ]
        total: Any = torch.stack(weighted).sum()
        total.backward()
    return [x.detach() for x in (*found, *(x.grad for x in args if x.grad is not None))]


def compiled(case: Case, target: str = "sm_90", **of_device: Any) -> tuple[list[Any], Any]:
    """Return results through `warpmma.torch.compile`, and the model that it made."""
    torch.manual_seed(0)
    model, args = case.make()
    made = wm.torch.compile(model, target=target, mode=case.mode, options=case.options, **of_device)
    return results(made, args), made


def eager(case: Case) -> list[Any]:
    """Return PyTorch's own results."""
    torch.manual_seed(0)
    return results(*case.make())


def error(found: list[Any], expected: list[Any]) -> float:
    """Return the largest difference of results, each relative to the largest number there."""
    worst = 0.0
    for x, y in zip(found, expected, strict=True):
        assert x.shape == y.shape and x.dtype == y.dtype, (x.shape, y.shape, x.dtype, y.dtype)
        largest = float(y.double().abs().max())
        worst = max(worst, float((x.double() - y.double()).abs().max()) / (largest or 1.0))
    return worst


def main(arguments: list[str] | None = None) -> int:
    """Run all cases; 1 if one differs from eager by more than it may, or if launches left other bytes on a GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cases, with * and ?")
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--launches", type=Path, metavar="FILE", help="keep launches with their memory")
    parser.add_argument("--version", default="", help="of the text that is kept (default: Triton's)")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="what a GPU's replay has written")
    options = parser.parse_args(arguments)
    if options.compare:
        return _compare(json.loads(options.compare.read_text()))
    kept: list[tuple[str, Launched]] = []
    wrong = 0
    for name, case in CASES.items():
        if not fnmatch.fnmatch(name, options.only):
            continue
        start = time.process_time()
        with watched(memory if options.launches else lambda device: None) as launches:
            found, made = compiled(case, options.target)
        seconds, off = time.process_time() - start, error(found, eager(case)) if case.error else 0.0
        wrong += (far := off > (case.error or 0.0))
        kept += [(name, x) for x in launches]
        said = f"off by {off:.1e}{f', MORE THAN {case.error}' if far else ''}" if case.error else "not compared"
        print(
            f"{name}: {len(launches)} launches, {made.report.instructions:,} instructions, {seconds:.1f} s, {said}",
            flush=True,
        )
        torch._dynamo.reset()
    print(f"{len(kept)} launches")
    if options.launches:
        write(options.launches, kept, options.version)
    return int(wrong > 0)


def _compare(replay: Mapping[str, Any]) -> int:
    """Print how many launches of each model left the simulator's bytes on a GPU; 1 if not all did."""
    every = Counter(x["name"] for x in replay["launches"])
    same = Counter(x["name"] for x in replay["launches"] if not x["different"])
    for name, count in every.items():
        print(f"{name}: {same[name]} of {count}")
    print(f"{same.total()} of {every.total()} launches leave the bytes of {replay['gpu']}, driver {replay['driver']}")
    return int(same != every)


if __name__ == "__main__":
    sys.exit(main())
