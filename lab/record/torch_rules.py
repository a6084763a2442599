"""Record how PyTorch rounds around its products on this machine's GPU: `python -m lab.record.torch_rules --out FILE`.

Needs an NVIDIA GPU and PyTorch, but not warpmma. `warpmma.torch` states what `addmm` does with C, alpha and beta, what
`_scaled_mm` does with scales and a bias, and how float32 is multiplied with and without TF32; this records what a GPU
does. The products are small, and mixed signs reveal a different order or rounding. The archive holds codes of operands
by digest, `NAME|d` of each case, and `cases`: JSON of the calls, their arguments and kernels. `--device cpu` runs
anywhere, for trying it out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

_WORDS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}
_SHAPES = ((64, 48, 208), (48, 64, 512), (16, 32, 2048))


class Cases:
    """The calls, each with operands from its own seed."""

    def __init__(self, torch: Any, device: str) -> None:
        self._torch, self._device = torch, device

    def drawn(self, seed: int, *shape: int, dtype: Any) -> Any:
        """Draw numbers with exponents from -6 to 3 and random fractions, of either sign."""
        rng = np.random.default_rng(seed)
        x = rng.uniform(1, 2, shape) * 2.0 ** rng.integers(-6, 3, shape) * rng.choice([-1, 1], shape)
        return self._torch.from_numpy(x).to(dtype).to(self._device)

    def all(self) -> Iterator[tuple[str, dict[str, Any], Callable[..., Any], bool]]:
        """Yield name, operands, the function to call, and whether TF32 is allowed."""
        t = self._torch
        for number, (m, n, k) in enumerate(_SHAPES):
            size, seed = f"{m}x{n}x{k}", 100 * number
            for name, dtype, tf32 in (
                ("f32", t.float32, False), ("tf32", t.float32, True), ("f16", t.float16, False),
                ("bf16", t.bfloat16, False), ("f64", t.float64, False),
            ):  # fmt: skip
                x = {"a": self.drawn(seed, m, k, dtype=dtype), "b": self.drawn(seed + 1, k, n, dtype=dtype)}
                yield f"mm {name} {size}", x, t.mm, tf32
                row = {"c": self.drawn(seed + 2, n, dtype=dtype), **x}
                yield f"addmm-row {name} {size}", row, t.addmm, tf32
                full = {"c": self.drawn(seed + 3, m, n, dtype=dtype), **x}
                yield f"addmm {name} {size}", full, t.addmm, tf32
                yield f"addmm-scaled {name} {size}", full, lambda c, a, b: t.addmm(c, a, b, alpha=0.7, beta=-1.3), tf32
                if name in ("f16", "bf16"):
                    for other, alpha, beta in (("alpha", 0.7, 1), ("beta", 1, -1.3), ("nothing", 0.7, 0)):
                        call = partial(t.addmm, alpha=alpha, beta=beta)
                        yield f"addmm-{other} {name} {size}", full, call, tf32
                    for other, shape in (("row2", (1, n)), ("column", (m, 1))):
                        yield f"addmm-{other} {name} {size}", {**x, "c": self.drawn(seed + 3, *shape, dtype=dtype)}, (
                            lambda a, b, c: t.addmm(c, a, b)
                        ), tf32  # fmt: skip
                    two = {
                        "c": self.drawn(seed + 3, 2, m, n, dtype=dtype), "a": self.drawn(seed, 2, m, k, dtype=dtype),
                        "b": self.drawn(seed + 1, 2, k, n, dtype=dtype),
                    }  # fmt: skip
                    yield f"baddbmm {name} {size}", two, t.baddbmm, tf32
                    yield f"baddbmm-scaled {name} {size}", two, partial(t.baddbmm, alpha=0.7, beta=-1.3), tf32
                    vectors = {"c": self.drawn(seed + 3, m, dtype=dtype), "a": x["a"], "b": x["b"][:, 0].contiguous()}
                    yield f"addmv {name} {size}", vectors, t.addmv, tf32
                linear = {"a": x["a"], "w": self.drawn(seed + 4, n, k, dtype=dtype), "c": row["c"]}
                yield f"linear {name} {size}", linear, lambda a, w, c: t.nn.functional.linear(a, w, c), tf32
                batch = {
                    "a": self.drawn(seed + 5, 3, m, k, dtype=dtype),
                    "b": self.drawn(seed + 6, 3, k, n, dtype=dtype),
                }
                if number == 0:
                    yield f"bmm {name} {size}", batch, t.bmm, tf32
                    yield f"mv {name} {size}", {"a": x["a"], "b": x["b"][:, 0].contiguous()}, t.mv, tf32
                    yield f"dot {name} {size}", {"a": x["a"][0], "b": x["b"][:, 0].contiguous()}, t.dot, tf32
            ints = {"a": self.drawn(seed, m, k, dtype=t.int8), "b": self.drawn(seed + 1, k, n, dtype=t.int8)}
            yield f"int_mm s8 {size}", ints, t._int_mm, False
            yield from self.scaled(size, seed, m, n, k)

    def scaled(self, size: str, seed: int, m: int, n: int, k: int) -> Iterator[Any]:
        """Yield products of fp8 with scales that are not powers of two."""
        t = self._torch
        one = {"sa": t.tensor(0.3712, device=self._device), "sb": t.tensor(1.9177, device=self._device)}
        rows = {
            "sa": self.drawn(seed + 7, m, 1, dtype=t.float32).abs(),
            "sb": self.drawn(seed + 8, 1, n, dtype=t.float32).abs(),
        }  # fmt: skip
        bias = self.drawn(seed + 9, n, dtype=t.bfloat16)
        for types in (("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e4m3", "e5m2")):
            of_a, of_b = (t.float8_e4m3fn if x == "e4m3" else t.float8_e5m2 for x in types)
            x = {"a": self.drawn(seed, m, k, dtype=of_a), "b": self.drawn(seed + 1, n, k, dtype=of_b).t()}
            for kind, scales in (("tensor", one), ("row", rows)):
                for out in ("bfloat16", "float32", "float8_e4m3fn"):
                    for fast in (False, True):
                        for extra in ({}, {"bias": bias}):

                            def call(out: str = out, fast: bool = fast, **x: Any) -> Any:
                                return t._scaled_mm(
                                    x["a"], x["b"], x["sa"], x["sb"], bias=x.get("bias"), use_fast_accum=fast,
                                    out_dtype=getattr(t, out),
                                )  # fmt: skip

                            words = f"{'fast' if fast else 'slow'} {out}{' bias' if extra else ''}"
                            yield (
                                f"scaled-{kind} {'-'.join(types)} {words} {size}",
                                {**x, **scales, **extra},
                                call,
                                False,
                            )


def codes(x: Any) -> Any:
    """Return a tensor's bits."""
    import torch

    return x.contiguous().view(getattr(torch, _WORDS[x.element_size()])).cpu().numpy()


def kept(x: Any, arrays: dict[str, Any]) -> str:
    """Store codes of an operand; return their digest, which is the key."""
    digest = hashlib.sha256(x.tobytes() + str(x.shape).encode()).hexdigest()[:16]
    arrays[digest] = x
    return digest


def kernels(torch: Any, call: Callable[[], Any], device: str) -> list[str]:
    """Name the kernels that a call runs, with their grids."""
    if device == "cpu":
        call()
        return []
    activity = torch.profiler.ProfilerActivity
    with torch.profiler.profile(activities=[activity.CPU, activity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profile.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    ran = sorted((e for e in events if e.get("cat") == "kernel"), key=lambda e: float(e["ts"]))
    return [f"{e['name']} grid {'x'.join(map(str, e.get('args', {}).get('grid', [])))}" for e in ran]


# Kernels with a special order of addition: GEMV, sums of 8 threads, slices that the grid does not reveal.
_OTHER_ORDERS = re.compile(r"(linear f32|mv (f32|tf32|f64)|dot|(mm|addmm|addmm-scaled) tf32|(addmm-row|linear) f64) ")
_LARGE = re.compile(r"(bmm|baddbmm\S*) (f32|tf32|f64|bf16) ")
_KEPT = re.compile(r"64x48x208|scaled-(tensor|row) e4m3-e4m3 (fast|slow) float32 16x32x2048")


def select(archives: list[Path], out: Path) -> None:
    """Write the part of the recording that the tests use."""
    arrays: dict[str, Any] = {}
    listed: list[dict[str, Any]] = []
    about: dict[str, str] = {}
    for path in archives:
        with np.load(path) as archive:
            recorded = json.loads(archive["cases"].tobytes())
            about |= recorded["about"]
            for case in recorded["cases"]:
                name = case["name"]
                if "error" in case or not _KEPT.search(name) or _OTHER_ORDERS.match(name) or _LARGE.match(name):
                    continue
                listed.append(case)
                arrays |= {x: archive[x] for x in (f"{name}|d", *(digest for digest, _ in case["operands"].values()))}
    write(out, about, listed, arrays)


def write(out: Path, about: dict[str, str], listed: list[dict[str, Any]], arrays: dict[str, Any]) -> None:
    """Write an archive."""
    arrays["cases"] = np.frombuffer(json.dumps({"about": about, "cases": listed}).encode(), np.uint8)
    np.savez_compressed(out, **arrays)
    print(f"{sum('error' not in x for x in listed)} recorded, {out.stat().st_size} bytes; {about}")


def main(arguments: list[str] | None = None) -> int:
    """Record; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, metavar="FILE", help="archive to write")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--only", default="", metavar="TEXT", help="a regular expression that names of cases contain")
    parser.add_argument(
        "--select", type=Path, nargs="+", metavar="ARCHIVE", help="record nothing: take from these what tests keep"
    )
    options = parser.parse_args(arguments)
    if options.select:
        select(options.select, options.out)
        return 0
    os.environ.setdefault("KINETO_LOG_LEVEL", "4")
    import torch

    about = {"torch": str(torch.__version__), "cuda": str(torch.version.cuda)}
    if options.device == "cuda":
        about["gpu"] = torch.cuda.get_device_name()
    arrays: dict[str, Any] = {}
    listed: list[dict[str, Any]] = []
    failed = 0
    for name, operands, function, tf32 in Cases(torch, options.device).all():
        if not re.search(options.only, name):
            continue
        torch.backends.cuda.matmul.allow_tf32 = tf32
        try:
            call = partial(function, **operands) if name.startswith("scaled") else partial(function, *operands.values())
            d, again = call(), call()
            ran = kernels(torch, call, options.device)
        except (RuntimeError, ValueError, TypeError) as error:
            failed += 1
            listed.append({"name": name, "error": " ".join(str(error).split())[:200]})
            continue
        listed.append({
            "name": name, "d": str(d.dtype), "kernels": ran, "repeatable": bool((codes(d) == codes(again)).all()),
            "operands": {x: [kept(codes(o), arrays), str(o.dtype)] for x, o in operands.items()},
        })  # fmt: skip
        arrays[f"{name}|d"] = codes(d)
    write(options.out, about, listed, arrays)
    print(f"{failed} refused by PyTorch")
    return 0


if __name__ == "__main__":
    sys.exit(main())
