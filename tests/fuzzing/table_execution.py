"""Instructions on registers and matrices, products of whole matrices, arithmetic, comparisons in tests, strategies."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

import warpmma as wm
from warpmma import arithmetic, scaling, sparsity, testing
from warpmma.formats import FORMATS
from warpmma.isa import Instruction
from warpmma.layouts import OPERANDS, Operand
from warpmma.products import FLOAT32, default_instruction
from warpmma.testing import strategies

from . import legal
from .calls import Entry
from .hostile import Rng, chance, pick
from .table_instructions import quantizable

__all__ = ["ENTRIES", "chosen"]


def _loaded(rng: Rng) -> dict[str, Any]:
    i, operand = legal.record(rng), pick(rng, "ABCD")
    shape = (*legal.batch(rng), *i.layout(operand).shape)  # type: ignore[arg-type]
    return {"instruction": legal.spelled(rng, i), "operand": operand,
            "matrix": legal.matrix(rng, i.format(operand), shape)}  # type: ignore[arg-type]  # fmt: skip


def _stored(rng: Rng) -> dict[str, Any]:
    i, operand = legal.record(rng), pick(rng, "ABCD")
    return {"instruction": legal.spelled(rng, i), "operand": operand,
            "registers": legal.registers(rng, i, operand, legal.batch(rng))}  # fmt: skip


def _executed(rng: Rng, i: Instruction | None = None) -> dict[str, Any]:
    i = i or legal.record(rng, pick(rng, ("any", "dense", "sparse", "scaled")))
    lead = legal.batch(rng)
    given: dict[str, Any] = {"instruction": legal.spelled(rng, i)}
    given |= {x.lower(): legal.registers(rng, i, x, lead) for x in "ABC"}
    given["target"] = legal.target(rng, i)
    if i.sparse:
        given["selector"] = pick(rng, sparsity.selectors(i))
        given["metadata"] = legal.metadata(rng, i, given["selector"], lead)
        if given["target"].startswith("sm_90") and chance(rng, 0.3):
            given["undefined"] = "hardware"
            given["metadata"] = rng.integers(0, 1 << 32, (*lead, 32), np.uint32)
    if i.block_scale:
        for x in "AB":
            given |= {f"{name}_{x.lower()}": value for name, value in legal.ids(rng, i, x).items()}
            given[f"scale_{x.lower()}"] = rng.integers(0, 1 << 32, (*lead, 32), np.uint32)
    return given | _workers(rng)


def _workers(rng: Rng) -> dict[str, Any]:
    return {"threads": 2} if chance(rng, 0.03) else {}


def multiplied(rng: Rng) -> dict[str, Any]:
    i, lead = legal.record(rng, pick(rng, ("any", "dense", "sparse", "scaled"))), legal.batch(rng)
    given: dict[str, Any] = {"instruction": legal.spelled(rng, i)}
    given |= {
        x.lower(): legal.matrix(rng, i.format(x), (*lead, *i.layout(x).shape))  # type: ignore[arg-type]
        for x in ("ABC" if chance(rng, 0.7) else "AB")
    }
    given["target"] = legal.target(rng, i)
    if i.sparse and chance(rng, 0.5):
        given["selector"] = pick(rng, sparsity.selectors(i))
        given["metadata"] = legal.metadata(rng, i, given["selector"], lead)
    elif i.sparse:
        given["a"] = sparsity.prune(legal.matrix(rng, i.format("A"), (*lead, i.m, i.k)), i)
    if i.block_scale:
        given |= {f"scale_{x.lower()}": legal.scales(rng, i, x, lead) for x in "AB"}
    return given | _workers(rng)


_KINDS = ("default", "dense", "wgmma", "sparse", "scaled", "quantized", "partial")


def product_operands(rng: Rng) -> dict[str, Any]:
    """Make a legal call of `matmul`."""
    kind, m, n = pick(rng, _KINDS), pick(rng, (0, 1, 3, 17)), pick(rng, (1, 5, 9))
    if kind == "default":
        name = pick(rng, ("f16", "bf16", "tf32", "f64", "s8"))
        i = default_instruction(name, name, None, "sm_90")
    elif kind == "wgmma":
        i = legal.wgmma(rng)
    elif kind == "partial":
        i = wm.parse("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
    else:
        i = legal.record(rng, "scaled" if kind == "quantized" else kind)
        while i.c_type != i.d_type or (kind == "quantized" and i.sparse):
            i = legal.record(rng, "scaled" if kind == "quantized" else kind)
    k = i.k * pick(rng, (1, 2, 3))
    lead: tuple[int, ...] = pick(rng, ((), (), (), (2,), (1,)))
    given: dict[str, Any] = {
        "a": legal.elements(rng, i.format("A"), (*lead, m, k)), "b": legal.elements(rng, i.format("B"), (*lead, k, n)),
        "target": legal.target(rng, i) if kind != "default" else "sm_90",
    }  # fmt: skip
    if kind != "default":
        given["instruction"] = legal.spelled(rng, i)
    elif i.a_type == "tf32" or chance(rng, 0.2):
        given["float32"] = pick(rng, tuple(FLOAT32))
    if chance(rng, 0.3) and kind != "quantized":
        given["c"] = legal.elements(rng, i.format("C"), (*lead, m, n))
    if i.sparse and chance(rng, 0.5):
        given["a"] = legal.elements(rng, i.format("A"), (*lead, m, k // 2))
        given["indices"] = legal.indices(rng, i, lead, m, k)
    elif i.sparse:
        given["a"] = sparsity.prune(given["a"], i)
    if kind == "quantized":
        given["a"] = scaling.quantize(quantizable(rng, i, "A", m or 1, k), i, "A")
        given["b"] = scaling.quantize(quantizable(rng, i, "B", n, k), i, "B")
    elif i.block_scale:
        given |= {f"scale_{x.lower()}": legal.scales(rng, i, x, lead, {"A": m, "B": n}[x], k) for x in "AB"}
    if kind == "partial":
        given |= pick(rng, ({"split_k": 2}, {"split_k": [16, k - 16]} if k > 16 else {}, {"promote_every": 16}))
    if chance(rng, 0.2) and i.d_type in ("f32", "f16"):
        given["epilogue"] = pick(rng, ("bf16", "f16", "e4m3", "f32"))
    return given | _workers(rng)


def _out(rng: Rng) -> dict[str, Any]:
    given = product_operands(rng)
    d = wm.matmul(**given)
    return {**given, "out": np.empty_like(d)}


def _lazy(rng: Rng) -> dict[str, Any]:
    import dask.array as da

    given: dict[str, Any] = {"target": "sm_90"}
    given["a"] = da.from_array(legal.elements(rng, FORMATS["f16"], (9, 32)), chunks=(4, 16))
    given["b"] = da.from_array(legal.elements(rng, FORMATS["f16"], (32, 7)), chunks=(16, 7))
    return given


def _computed(**given: Any) -> Any:
    d = wm.matmul(**given)
    return d.compute(scheduler="synchronous") if hasattr(d, "compute") else d


def chosen(rng: Rng) -> dict[str, Any]:
    """Make a legal call of `choose`."""
    return {name: x for name, x in product_operands(rng).items() if name != "threads"}


def _found(rng: Rng) -> dict[str, Any]:
    i = legal.anything(rng)
    parts = {
        "a": i.a_type, "b": i.b_type, "c": i.c_type, "d": i.d_type, "m": i.m, "n": i.n, "k": i.k, "sparse": i.sparse,
        "kind": i.kind, "block_scale": i.block_scale, "stype": i.stype, "satfinite": i.satfinite,
        "target": legal.target(rng, i), "scale_vec": i.scale_vec,
    }  # fmt: skip
    return {name: x for name, x in parts.items() if chance(rng, 0.3)}


def _default(rng: Rng) -> dict[str, Any]:
    i = legal.dense(rng)
    return {"a": i.a_type, "b": i.b_type, "c": pick(rng, (None, i.c_type)), "target": legal.target(rng, i)}


def _arithmetic(rng: Rng) -> dict[str, Any]:
    i = legal.record(rng, pick(rng, ("dense", "scaled", "sparse")))
    recipe = arithmetic.recipe(i, legal.target(rng, i))
    k, m, n = i.k, 2, 3
    stored = k // 2 if i.sparse else k
    a, b = legal.codes(rng, i.format("A"), (stored, m, 1)), legal.codes(rng, i.format("B"), (k, 1, n))
    given: dict[str, Any] = {"recipe": recipe, "a": a, "b": b, "c": legal.codes(rng, i.format("C"), (m, n))}
    if i.a_type == "b1":  # single bits are multiplied in words
        given |= {"a": legal.codes(rng, FORMATS["f32"], (k // 32, m, 1)),
                  "b": legal.codes(rng, FORMATS["f32"], (k // 32, 1, n))}  # fmt: skip
    if i.sparse:
        given["chosen"] = np.sort(rng.integers(0, k, (stored, m, 1)), axis=0)
    if i.block_scale:
        form, s = FORMATS[i.stype or ""], i.scales_per_row
        given |= {"scale_a": legal.codes(rng, form, (s, m, 1)), "scale_b": legal.codes(rng, form, (s, 1, n))}
    return given


def _approximated(rng: Rng) -> dict[str, Any]:
    row = pick(rng, tuple(arithmetic.SEQUENCES.values()))
    return {"form": row.form, "*codes": [legal.codes(rng, row.fmt, (3, 4)) for _ in range(row.operands)]}


def _factors(rng: Rng) -> dict[str, Any]:
    codes = [rng.integers(0, 1 << 32, 32, np.uint32) for _ in range(2)]
    form = pick(rng, ("div.full.f32", "div.approx.f32", "div.full.ftz.f32"))
    return {"form": form, "dividend": codes[0], "divisor": codes[1]}


def _products(rng: Rng) -> dict[str, Any]:
    given = _arithmetic(rng)
    turned = {
        name: np.ascontiguousarray(x[:, :, 0].T[None])
        for name, x in given.items()
        if name in ("a", "chosen", "scale_a")
    }
    turned |= {name: np.ascontiguousarray(given[name][:, 0][None]) for name in ("b", "scale_b") if name in given}
    if "chosen" in turned:
        turned["chosen"] = turned["chosen"].astype(np.uint8)
    extra = {"scales": given["scale_a"].shape[0]} if "scale_a" in given else {}
    return {"recipe": given["recipe"], **turned, "c": given["c"][None], "k": len(given["a"]),
            "engine": pick(rng, list(wm.engines())), **extra}  # fmt: skip


def _compared(rng: Rng) -> dict[str, Any]:
    i, operand = legal.record(rng), pick(rng, "ABCD")
    actual = legal.elements(rng, i.format(operand), i.layout(operand).shape)  # type: ignore[arg-type]
    expected = actual.copy()
    if chance(rng, 0.6):
        expected.flat[int(rng.integers(expected.size))] = actual.flat[0]
    given: dict[str, Any] = {"actual": actual, "expected": expected, "tile": pick(rng, (None, 2, (4, 8)))}
    if chance(rng, 0.6):
        given |= {"instruction": legal.spelled(rng, i), "operand": operand}
        if operand == "D" and not i.sparse and not i.block_scale and chance(rng, 0.2):
            a, b = (legal.elements(rng, i.format(x), i.layout(x).shape) for x in ("A", "B"))
            given["inputs"] = {"a": a, "b": b, "pairs": 0}
    return given


def _stepped(rng: Rng) -> dict[str, Any]:
    form = legal.fmt(rng)
    shape = pick(rng, ((), (3,), (2, 3)))
    return {
        "format": pick(rng, (form.name, form)),
        "x": legal.codes(rng, form, shape),
        "y": legal.elements(rng, form, shape),
    }


def _array_with(format: Any, shape: Any, elements: Any, fill: Any = 0) -> Any:
    """Make an array, but none that a test should not take the memory for."""
    return testing.array_with(format, legal.modest(shape, 1 << 16, 5), elements, fill)


def _sparse_array(rng: Rng) -> dict[str, Any]:
    given: dict[str, Any] = {
        "format": pick(rng, (*FORMATS, "uint32", "uint64")), "shape": pick(rng, (3, (2, 3))), "elements": {},
    }  # fmt: skip
    if isinstance(given["shape"], tuple):
        given["elements"] = {(1, 2): 1, (0, 0): 0}
    return given


def _of_gpu(rng: Rng, make: Any) -> dict[str, Any]:
    given = make(rng)
    return {"self": testing.Gpu(given.pop("target")), **given}


def _launch_on(self: testing.Gpu, kernel: Any, grid: Any, block: Any, args: Any, **more: Any) -> Any:
    return self.launch(kernel, legal.modest(grid, 64, 2), block, args, **more)


def _launched(rng: Rng) -> dict[str, Any]:
    return {
        "self": testing.Gpu("sm_90"),
        "kernel": lambda t, *_: None,
        "grid": 1,
        "block": 32,
        "args": [np.zeros(4, "u4")],
    }


def _guessed(rng: Rng) -> dict[str, Any]:
    record = pick(rng, _GUESSED)
    operands: tuple[Operand, ...] = ("A", "B", "C")
    a, b, c = (legal.elements(rng, record.format(x), record.layout(x).shape) for x in operands)
    more = {"metadata": np.full(32, 0x4444_4444, np.uint32), "selector": 0} if record.sparse else {}
    return {"instruction": record, "a": a, "b": b, "c": c, **more, "got": c.copy(), "pairs": 10}


def _guess(**given: Any) -> Any:
    return testing.guess(**given, target="sm_90") if "target" not in given else testing.guess(**given)


def _guess_on(self: testing.Gpu, **given: Any) -> Any:
    return self.guess(**given)


def _guessed_fragment(rng: Rng) -> dict[str, Any]:
    record, operand = pick(rng, _GUESSED), pick(rng, OPERANDS)
    layout = record.layout(operand)
    words = rng.integers(0, 1 << 32, (layout.registers, 32)).astype(layout.packing.dtype)
    return {"instruction": record, "operand": operand, "actual": words[::-1].copy(), "expected": words}


def _drawn(rng: Rng) -> dict[str, Any]:
    form = legal.fmt(rng)
    return {"format": pick(rng, (form.name, form, form.dtype)), "shape": pick(rng, (3, (2, 3), ())),
            "kind": pick(rng, strategies.KINDS)}  # fmt: skip


_M, _G, _S = (f"warpmma.{x}" for x in ("testing", "testing:Gpu", "testing.strategies"))
_FORMS = ("matrices", "registers")
_GUESSED = tuple(
    wm.parse(f"mma.{x}")
    for x in (
        "sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", "sync.aligned.m16n8k16.row.col.s32.s8.s8.s32",
        "sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    )
)  # fmt: skip
_PTX = ".version 8.0 .target sm_80 .address_size 64 .entry nothing() { ret; }"


def _text(object: Any) -> str:
    return str(object)


ENTRIES = (
    Entry(name="warpmma:load", call=wm.load, make=_loaded, weight=6),
    Entry(name="warpmma:store", call=wm.store, make=_stored, weight=6),
    Entry(name="warpmma:execute", call=wm.execute, make=_executed, weight=16, engines=True),
    Entry(name="warpmma:mma", call=wm.mma, make=multiplied, weight=12, engines=True),
    Entry(
        name="warpmma:evidence", call=wm.evidence, weight=2,
        make=lambda rng: (lambda i: {"instruction": legal.spelled(rng, i), "target": legal.target(rng, i)})(
            legal.anything(rng)
        ),
    ),
    Entry(name="warpmma:engines", call=wm.engines, make=lambda rng: {}, weight=0.2),
    Entry(
        name="warpmma:Evidence", call=wm.Evidence, weight=0.3,
        make=lambda rng: {"kind": "measured", "source": "us", "device": "a GPU"},
    ),
    Entry(
        name="warpmma:Evidence.__str__", call=_text, weight=0.2, fixed=("object",),
        make=lambda rng: {"object": wm.evidence("mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", target="sm_80")},
    ),
    Entry(name="warpmma:matmul", call=wm.matmul, make=product_operands, weight=12, engines=True),
    Entry(name="warpmma:matmul out", call=wm.matmul, make=_out, weight=4, writes=("out",), pure=False),
    Entry(name="warpmma:matmul dask", call=_computed, make=_lazy, weight=0.5, pure=False),
    Entry(name="warpmma:choose", call=wm.choose, make=chosen, weight=5),
    Entry(
        name="warpmma:Choice", call=wm.Choice, weight=0.2, pure=False,
        make=lambda rng: (lambda x: {f.name: getattr(x, f.name) for f in fields(x)})(wm.choose(**chosen(rng))),
    ),
    Entry(name="warpmma:Choice.__str__", call=_text, make=lambda rng: {"object": wm.choose(**chosen(rng))}, weight=0.5,
          fixed=("object",)),
    Entry(name="warpmma:find", call=wm.find, make=_found, weight=3),
    Entry(name="warpmma.products:default_instruction", call=default_instruction, make=_default, weight=2),
    Entry(name="warpmma.arithmetic:compute", call=arithmetic.compute, make=_arithmetic, weight=3, fixed=("recipe",)),
    Entry(name="warpmma.arithmetic:approximate", call=arithmetic.approximate, make=_approximated, weight=3),
    Entry(name="warpmma.arithmetic:quotient_factors", call=arithmetic.quotient_factors, make=_factors, weight=2),
    Entry(name="warpmma.arithmetic:product", call=arithmetic.product, make=_products, weight=3, fixed=("recipe",)),
    Entry(
        name=f"{_M}:assert_same_bits", call=testing.assert_same_bits, make=_compared, weight=5, may=(AssertionError,),
    ),
    Entry(
        name=f"{_M}:assert_close", call=testing.assert_close, weight=3, may=(AssertionError,),
        make=lambda rng: {"rtol": 1e-3, "atol": 0.5, **{k: x for k, x in _compared(rng).items() if k != "inputs"}},
    ),
    Entry(name=f"{_M}:ulps", call=testing.ulps, make=_stepped, weight=4),
    Entry(name=f"{_M}:array_with", call=_array_with, make=_sparse_array, weight=2),
    Entry(name=f"{_M}:guess", call=_guess, make=_guessed, weight=0.1),
    Entry(
        name=f"{_G}.guess", call=_guess_on, weight=0.03,
        make=lambda rng: {"self": testing.Gpu("sm_90"), **_guessed(rng)},
    ),
    Entry(name=f"{_M}:guess_fragment", call=testing.guess_fragment, make=_guessed_fragment, weight=1),
    Entry(name=f"{_M}:Guesses", call=testing.Guesses, make=lambda rng: {"mistakes": ("A was 0",)}, weight=0.2),
    Entry(
        name=f"{_M}:Guesses.__str__", call=_text, make=lambda rng: {"object": testing.Guesses(alike=9)}, weight=0.1,
        fixed=("object",),
    ),
    Entry(name=_G, call=testing.Gpu, make=lambda rng: {"target": legal.target(rng)}),
    Entry(
        name=f"{_G}.__str__", call=_text, make=lambda rng: {"object": testing.Gpu("sm_80")}, weight=0.1,
        fixed=("object",),
    ),
    Entry(name=f"{_G}.mma", call=testing.Gpu.mma, make=lambda rng: _of_gpu(rng, multiplied), weight=2),
    Entry(name=f"{_G}.execute", call=testing.Gpu.execute, make=lambda rng: _of_gpu(rng, _executed), weight=2),
    Entry(name=f"{_G}.matmul", call=testing.Gpu.matmul, make=lambda rng: _of_gpu(rng, product_operands), weight=2),
    Entry(name=f"{_G}.device", call=lambda self: repr(self.device()), weight=0.2,
          make=lambda rng: {"self": testing.Gpu(legal.target(rng))}),
    Entry(name=f"{_G}.triton", call=lambda self: repr(self.triton()), weight=0.05, pure=False, needs="triton.language",
          make=lambda rng: {"self": testing.Gpu("sm_90")}),
    Entry(name=f"{_G}.load", call=lambda self, source, name="": repr(self.load(source, name)), pure=False,
          make=lambda rng: {"self": testing.Gpu("sm_90"), "source": _PTX, "name": "k.ptx"}),
    Entry(name=f"{_G}.launch", call=_launch_on, make=_launched, weight=1, pure=False),
    *(
        Entry(name=f"{_G}.{x}", call=getattr(testing.Gpu, x),
              make=lambda rng: {"self": testing.Gpu("sm_90a"), "instruction": legal.spelled(rng, legal.anything(rng))})
        for x in ("evidence", "has")
    ),
    Entry(name=f"{_S}:matrices", call=strategies.matrices, make=_drawn, weight=2),
    Entry(
        name=f"{_S}:fragments", call=strategies.fragments, weight=2,
        make=lambda rng: {"instruction": legal.instruction(rng), "operand": pick(rng, "ABCD"),
                          "batch": pick(rng, ((), 2, (2, 1))), "kind": pick(rng, strategies.KINDS)},
    ),
    Entry(
        name=f"{_S}:operands", call=strategies.operands, weight=2,
        make=lambda rng: {"instruction": legal.instruction(rng), "form": pick(rng, _FORMS), "batch": pick(rng, ((), 2)),
                          "kind": pick(rng, strategies.KINDS)},
    ),
)  # fmt: skip
