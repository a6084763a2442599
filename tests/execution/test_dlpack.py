"""Arrays that NumPy cannot read, taken by DLPack: every type, layout and lifetime, and what is refused."""

from __future__ import annotations

import gc
import sys
from types import SimpleNamespace
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from arrays import Array, same
from dlpack_cases import Old, Versioned
from messages import exactly

import warpmma as wm
from warpmma import scaling, sparsity
from warpmma._arrays import as_array
from warpmma.errors import OperandError, ScaleError
from warpmma.testing import assert_same_bits, ulps

each_form = pytest.mark.parametrize("form", [Versioned, Old])

BF16 = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
E4M3 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"
SP = "mma.sp.sync.aligned.m16n8k32.row.col.f32.bf16.bf16.f32"
PADDED = 1 << 2

# The codes of DLPack's header, and widths.
TYPES: dict[tuple[int, int], Any] = {
    (0, 8): np.int8, (0, 16): np.int16, (0, 32): np.int32, (0, 64): np.int64,
    (1, 8): np.uint8, (1, 16): np.uint16, (1, 32): np.uint32, (1, 64): np.uint64,
    (2, 16): np.float16, (2, 32): np.float32, (2, 64): np.float64, (4, 16): ml_dtypes.bfloat16,
    (5, 64): np.complex64, (5, 128): np.complex128, (6, 8): np.bool_,
    (7, 8): ml_dtypes.float8_e3m4, (8, 8): ml_dtypes.float8_e4m3, (9, 8): ml_dtypes.float8_e4m3b11fnuz,
    (10, 8): ml_dtypes.float8_e4m3fn, (11, 8): ml_dtypes.float8_e4m3fnuz, (12, 8): ml_dtypes.float8_e5m2,
    (13, 8): ml_dtypes.float8_e5m2fnuz, (14, 8): ml_dtypes.float8_e8m0fnu, (15, 6): ml_dtypes.float6_e2m3fn,
    (16, 6): ml_dtypes.float6_e3m2fn, (17, 4): ml_dtypes.float4_e2m1fn,
}  # fmt: skip


def drawn(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Array:
    """An array of any bits, but for bools and what is narrower than a byte."""
    kind = np.dtype(dtype)
    most = {np.dtype("?"): 2, np.dtype(ml_dtypes.float4_e2m1fn): 16}.get(kind, 64 if "float6" in kind.name else 256)
    octets = np.random.default_rng(seed).integers(0, most, (*shape, kind.itemsize), np.uint8)
    array: Array = octets.view(kind)[..., 0]
    return array


def bits(x: Array) -> Array:
    return np.ascontiguousarray(x).view(np.uint8)


@each_form
@pytest.mark.parametrize(("code", "width"), TYPES)
def test_every_type(form: Any, code: int, width: int) -> None:
    x = drawn((3, 5), TYPES[code, width])
    if width < 8 and form is Old:  # which has no flags
        with pytest.raises(OperandError, match=r"not an array: elements are float\d_.*, which share bytes; expected"):
            as_array(cast(Any, form(x, code, width)), "A")
        return
    y = as_array(form(x, code, width, flags=PADDED if width < 8 else 0), "A")
    assert y.dtype == x.dtype and not y.flags.writeable
    assert np.shares_memory(x.view(f"V{x.itemsize}"), y.view(f"V{x.itemsize}"))
    same(bits(y), bits(x))


@each_form
def test_every_layout(form: Any) -> None:
    x = drawn((4, 6, 10), ml_dtypes.bfloat16)
    views = [x, x.T, x[::2, 1:, ::3], x[:, ::-1], x[1], x[1, 2, 3:4], np.broadcast_to(x[0], (3, 6, 10)), x[0, 0, 0:1]]
    for view in views:
        same(bits(as_array(form(view, 4, 16), "A")), bits(view))
    same(bits(as_array(form(x, 4, 16, strides=False), "A")), bits(x))
    same(bits(as_array(form(x[2:], 4, 16, offset=x[:2].nbytes), "A")), bits(x[2:]))
    for shape in ((), (0,), (3, 0), (0, 4, 5)):
        y = drawn(shape, ml_dtypes.bfloat16)
        z = as_array(form(y, 4, 16), "A")
        assert z.shape == shape and z.dtype == y.dtype
        same(bits(z), bits(y))


@each_form
def test_memory_lives_as_long_as_the_array(form: Any) -> None:
    lender = form(drawn((3, 4), ml_dtypes.bfloat16), 4, 16)
    y: Array | None = as_array(lender, "A")
    assert y is not None and not lender.freed
    view: Array | None = y[1:]
    del y
    gc.collect()
    assert not lender.freed
    del view
    gc.collect()
    assert len(lender.freed) == 1
    with pytest.raises(OperandError, match="elements are bfloat16, 16 in one"):
        as_array(form(lender.array, 4, 16, lanes=16), "A")
    empty = form(lender.array[:0], 4, 16)
    as_array(empty, "A")
    gc.collect()
    assert len(empty.freed) == 1


def exported(x: Array) -> Any:  # type checkers know no array that has `__dlpack__` alone
    """`x` in nothing but DLPack."""
    (code, width), *_ = [key for key, kind in TYPES.items() if np.dtype(kind) == x.dtype]
    return Versioned(x, code, width)


def test_everything_takes_them() -> None:
    """Registers, matrices, products, sparsity, scales, formats, comparisons; results are NumPy's."""
    rng, out = np.random.default_rng(1), exported
    a, b = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((16, 16), (16, 8)))
    c = rng.standard_normal((16, 8)).astype(np.float32)
    registers = [wm.load(BF16, name, x) for name, x in (("A", a), ("B", b), ("C", c))]  # type: ignore[arg-type]
    same(wm.load(BF16, "A", out(a)), registers[0])
    d = wm.execute(BF16, *map(out, registers), target="sm_90")
    assert type(d) is np.ndarray
    same(d, wm.execute(BF16, *registers, target="sm_90"))
    same(wm.store(BF16, "D", out(d)), wm.mma(BF16, a, b, c, target="sm_90"))
    same(wm.mma(BF16, out(a), out(b), out(c), target="sm_90"), wm.mma(BF16, a, b, c, target="sm_90"))
    left, right = rng.standard_normal((33, 50)), rng.standard_normal((50, 9))
    for x, y in ((ml_dtypes.bfloat16, ml_dtypes.bfloat16), (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)):
        p, q = left.astype(x), right.astype(y)
        found = wm.matmul(out(p), out(q), target="sm_90")
        assert type(found) is np.ndarray
        same(found, wm.matmul(p, q, target="sm_90"))
    weights = rng.standard_normal((5, 64)).astype(ml_dtypes.bfloat16)
    pruned = sparsity.prune(out(weights), SP)
    same(bits(pruned), bits(sparsity.prune(weights, SP)))
    stored, indices = sparsity.compress(out(pruned), SP)
    same(bits(sparsity.expand(out(stored), out(indices), SP)), bits(pruned))
    y = rng.standard_normal((64, 3)).astype(ml_dtypes.bfloat16)
    same(wm.matmul(out(stored), out(y), instruction=SP, target="sm_90", indices=out(indices)),
         wm.matmul(pruned, y, instruction=SP, target="sm_90"))  # fmt: skip
    i = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e4m3.f32.ue8m0"
    scaled = scaling.quantize(out(weights), i)
    same(scaled.scales, scaling.quantize(weights, i).scales)
    typed = np.repeat(scaled.scales[:1, :1], 16, axis=0).view(ml_dtypes.float8_e8m0fnu)
    same(scaling.pack_scales(out(typed), i, "A"), scaling.pack_scales(typed, i, "A"))
    same(wm.FORMATS["e4m3"].encode(out(weights)), wm.FORMATS["e4m3"].encode(weights))
    same(wm.FORMATS["bf16"].decode(out(weights.view(np.uint16))), weights.astype(np.float64))
    assert_same_bits(out(a), a)
    with pytest.raises(AssertionError, match="1 of 256 elements differ"):
        assert_same_bits(out(a), np.where(np.arange(256).reshape(16, 16) == 7, ml_dtypes.bfloat16(9), a))
    assert not ulps("bf16", out(a), a).any()


# What is refused. ~ stands for the rest of a message.


X = drawn((2, 3), ml_dtypes.bfloat16)


class Refuses(Versioned):
    def __dlpack__(self, **_: object) -> object:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()\nand more")


class Nothing(Versioned):
    def __dlpack__(self, **_: object) -> object:
        return "a capsule"


class Negated(Versioned):
    def is_neg(self) -> bool:
        return True


class WithoutDevice:
    def __dlpack__(self) -> object:
        raise AssertionError


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (Versioned(X, 4, 16, device=2),
         "A lies on another device (a CUDA GPU); copy it to the CPU first, as .cpu() does"),
        (Versioned(X, 4, 16, device=10), "A lies on another device (a ROCm GPU); ~"),
        (Versioned(X, 4, 16, device=99), "A lies on another device (device type 99 of DLPack); ~"),
        (Refuses(X, 4, 16), "A: not an array: Can't export tensors that require gradient, use tensor.detach()"),
        (Negated(X, 4, 16), "A: not an array: it is negated on reading; pass x.resolve_neg()"),
        (Nothing(X, 4, 16), "A: not an array: its __dlpack__ returned str; expected a capsule"),
        (WithoutDevice(), "A: not an array: 'WithoutDevice' object has no attribute '__dlpack_device__'"),
        (Versioned(X, 4, 16, version=(2, 0)), "A: not an array: it exports DLPack 2.0; expected 1"),
        (Versioned(X, 4, 16, lost=True), "A: not an array: it has no memory"),
        (Versioned(X, 3, 64),
         "A: not an array: elements are of 64 bits, DLPack's type code 3; expected int8, int16, ~, "
         "bfloat16, float8_e3m4, ~, float4_e2m1fn, each in bytes of its own"),
        (Versioned(X, 2, 128), "A: not an array: elements are of 128 bits, DLPack's type code 2; ~"),
        (Versioned(X, 0, 4), "A: not an array: elements are of 4 bits, DLPack's type code 0; ~"),
        (Versioned(X, 17, 4), "A: not an array: elements are float4_e2m1fn, which share bytes; ~"),
        (Versioned(X, 17, 4, lanes=2, flags=PADDED), "A: not an array: elements are float4_e2m1fn, 2 in one; ~"),
    ],
    ids=lambda x: x.replace(" ", "-")[:60] if isinstance(x, str) else "",
)  # fmt: skip
def test_what_is_refused(x: Any, message: str) -> None:
    with pytest.raises(OperandError, match=exactly(message)):
        as_array(x, "A")
    with pytest.raises(ScaleError, match=exactly(message)):
        as_array(x, "A", ScaleError)


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu"])
def test_fp8_of_a_library_that_does_not_export_it(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As PyTorch's was before DLPack had codes for it."""

    class Tensor:
        dtype, requires_grad = f"torch.{kind}", False

        def __dlpack_device__(self) -> tuple[int, int]:
            return 1, 0

        def __dlpack__(self, **_: object) -> object:
            raise BufferError("float8 types are not supported by dlpack")

        def view(self, dtype: str) -> Versioned:
            assert dtype == "uint8 of torch"
            return Versioned(x.view(np.uint8), 1, 8)

    monkeypatch.delitem(sys.modules, "torch", raising=False)
    x = drawn((4, 5), np.dtype(getattr(ml_dtypes, kind)))
    with pytest.raises(OperandError, match=exactly("A: not an array: float8 types are not supported by dlpack")):
        as_array(cast(Any, Tensor()), "A")
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(uint8="uint8 of torch"))
    found = as_array(cast(Any, Tensor()), "A")
    assert found.dtype == x.dtype
    same(bits(found), bits(x))
    monkeypatch.setattr(Tensor, "requires_grad", True)
    with pytest.raises(OperandError, match=exactly("A: not an array: float8 types are not supported by dlpack")):
        as_array(cast(Any, Tensor()), "A")


def test_pinned_memory_is_the_cpus() -> None:
    for device in (3, 11):
        same(bits(as_array(cast(Any, Versioned(X, 4, 16, device=device)), "A")), bits(X))


def test_what_numpy_can_read_it_reads() -> None:
    """An object with `__array__` too is asked by it, and only if that fails by DLPack."""

    class Both(Versioned):
        def __array__(self, dtype: object = None, copy: object = None) -> Array:
            return np.arange(3.0)

    class Fails(Versioned):
        def __array__(self, dtype: object = None, copy: object = None) -> Array:
            raise RuntimeError("Got unsupported ScalarType BFloat16")

    same(as_array(Both(X, 4, 16, device=2), "A"), np.arange(3.0))
    same(bits(as_array(Fails(X, 4, 16), "A")), bits(X))
    array = np.arange(3)
    assert as_array(array, "A") is array
    assert as_array(np.float32(1), "A").shape == ()
