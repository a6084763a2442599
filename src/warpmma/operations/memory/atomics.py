"""`atom` and `red`: the forms, and how they combine operands with the element in memory.

The rules (PTX ISA 9.1, 9.7.13, `atom`, `red` and "Vector atomics"):

1.  An atomic reads an element, computes, and writes it, indivisibly; `atom` returns what it read, `red` nothing. The
    address is a multiple of the bytes of the element, or of the vector.
2.  `and`, `or`, `xor`, `exch`, `add` (which wraps), `min` and `max` have their usual meaning. `inc` stores 0 if the
    element is at least the operand, else adds 1; `dec` stores the operand if the element is 0 or greater than it, else
    subtracts 1. `cas` compares with the first operand and, if that is equal, stores the second. The 128 bits of `b128`
    are two b64 registers, low first.
3.  Floats are added with rounding to nearest even. f32 in global memory flushes subnormal operands and results to zeros
    of the same sign; f32 in shared memory does not, nor do f64, f16 and bf16 (`.noftz`). With f64, global memory keeps
    a NaN unchanged, and prefers that of the operand; shared memory prefers that of the element, and quiets it.
4.  Each element of a vector is updated separately: other accesses may come between. Vectors are in global memory, and
    their generic addresses, too: with one of shared memory an H200 changes nothing.
5.  The default order of an atomic is `.relaxed`, the default scope `.gpu`. Without a space the address is generic.
    `red` returns nothing to its thread, so it has neither `.acquire` nor `.acq_rel`.
6.  On the shared memory of another block of a cluster, ptxas 13.0 makes a load and a store of `min`, `max`, `and`, `or`
    and `xor` of 64 bits: on an H200 updates are lost (`lab.measure.remote_atomics`). They are not atomic there. Of
    `add` of f16x2 and bf16x2 it makes one sum of integers, whose bits are those of no sum of floats: it is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..._arrays import Array
from ...formats import FORMATS
from ...isa import POLICY, Signature, address, numbered
from ..arithmetic import float_operation
from ..elements import is_nan
from ..forms import Form
from ..measurements import ATOMICS, measured, published
from ..records import DTYPES, InstructionRow, MemoryOrder, MemoryScope, RegisterType, register_type
from ..windows import Space, space_of

_F64 = FORMATS["f64"]


@dataclass(frozen=True, kw_only=True)
class Atomic(InstructionRow):
    """One `atom` or `red`.

    Attributes
    ----------
    operation : str
        "add", "cas", ...
    space : {"generic", "global", "shared"}
        Addresses are b64 registers, or b32 in "shared"; "global" of vectors without a space (rule 4).
    type : str
        PTX type of an element: "b32", "f16x2", "b128".
    count : int
        Elements of a vector; 1 without `.v2`, `.v4`, `.v8`.
    returns : bool
        Whether it returns what it read.
    order : str
        "relaxed", "acquire", "release" or "acq_rel".
    scope : {"cta", "cluster", "gpu", "sys"}
    hint : bool
        Whether a cache policy is the last operand.
    combine : callable
        From the space, "global" or "shared", the value read and the operands, as unsigned integers of an element's
        bits, to the value written. 128 bits are `[..., 2]` of 64.
    """

    operation: str
    space: Space
    type: str
    count: int = 1
    returns: bool
    order: MemoryOrder = "relaxed"
    scope: MemoryScope = "gpu"
    hint: bool = False
    combine: Callable[..., Array] = field(repr=False, compare=False)

    @property
    def bits(self) -> int:
        """Bits of an element."""
        return 32 if self.type.endswith("x2") else int(self.type.lstrip("bfsu"))

    @property
    def size(self) -> int:
        """Bytes per lane; its address is a multiple of that."""
        return self.count * self.bits // 8

    @property
    def kind(self) -> RegisterType:
        """Class of the registers that hold an element; two b64 hold 128 bits."""
        return "b64" if self.bits == 128 else register_type(f"b{self.bits}")

    @property
    def registers(self) -> int:
        """Registers of each operand, and of the result."""
        return 2 if self.bits == 128 else self.count

    @property
    def values(self) -> int:
        """Operands besides the address and the policy."""
        return 2 if self.operation == "cas" else 1

    @property
    def observes(self) -> bool:
        """Whether it may observe concurrent writes: threads that spin on it let others run."""
        return self.returns

    @property
    def divided(self) -> bool:
        """Whether ptxas makes a load and a store of it in the shared memory of another block (rule 6)."""
        return self.packed or (self.bits == _LONG and self.operation in ("min", "max", "and", "or", "xor"))

    @property
    def packed(self) -> bool:
        """Whether it adds two floats of 16 bits in one element."""
        return self.operation == "add" and self.type.endswith("x2")

    @property
    def floating(self) -> bool:
        """Whether it adds floats, whose sum depends on the order of the operands."""
        return self.operation == "add" and "f" in self.type

    @cached_property
    def signature(self) -> Signature:
        """Its operands: `d0`, ... are results, `a0`, `b0`, ... are sources, `p` is the address."""
        type_ = "b64" if self.bits == 128 else self.type
        more: dict[str, Any] = {"kind": self.kind, "braces": "always" if self.count > 1 else "never"}
        result = numbered("d", self.registers, type_, role="result", sink="alone", **more)
        values = (numbered(letter, self.registers, type_, **more) for letter in "ab"[: self.values])
        return (*[result] * self.returns, address("p", self.space), *values, *[POLICY] * self.hint)


_LONG = 64  # bits

# Rules 2 and 3

_INTEGERS: Mapping[str, Callable[..., Any]] = {
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": lambda old, new: new,
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "inc": lambda old, most: np.where(old >= most, old.dtype.type(0), old + old.dtype.type(1)),
    "dec": lambda old, most: np.where((old == 0) | (old > most), most, old - old.dtype.type(1)),
    "cas": lambda old, equal, new: np.asarray(np.where(old == equal, new, old)),
}


def _integer(operation: str, type_: str, space: str, old: Array, *operands: Array) -> Array:
    if type_ == "b128" and operation == "cas":
        equal, new = operands
        return np.asarray(np.where((old == equal).all(axis=-1, keepdims=True), new, old))
    if type_[0] == "s":
        signed = [np.ascontiguousarray(x).view(f"i{x.itemsize}") for x in (old, *operands)]
        return np.asarray(_INTEGERS[operation](*signed)).view(old.dtype)
    return np.asarray(_INTEGERS[operation](old, *operands))


def _float(operation: str, type_: str, space: str, old: Array, value: Array) -> Array:
    ftz = ".ftz" * (type_ == "f32" and space == "global")
    mnemonic = f"add.rn{ftz}.{type_}" if operation == "add" else f"{operation}.{type_}"
    kind = DTYPES[register_type("b32" if type_.endswith("x2") else f"b{type_.lstrip('bf')}")]
    first, second = old.astype(kind, copy=False), value.astype(kind, copy=False)
    if type_ == "f64" and space != "global":  # of two NaNs, `add` returns the second
        first, second = second, first
    (result,) = float_operation(mnemonic).compute(first, second)
    if type_ == "f64" and space == "global":
        result = np.where(is_nan(_F64, value), value, np.where(is_nan(_F64, old), old, result))
    return result.astype(old.dtype, copy=False)


def _fields(words: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a row that the words of a mnemonic determine."""
    operation = next(x for x in words if x in (*_INTEGERS, "add"))
    vector = next((int(x[1:]) for x in words if x in ("v2", "v4", "v8")), 1)
    combine = _float if "f" in words[-1] else _integer
    return {
        "operation": operation, "space": "global" if vector > 1 else space_of(words), "type": words[-1],
        "count": vector, "returns": words[0] == "atom",
        "order": next((x for x in words if x in ("relaxed", "acquire", "release", "acq_rel")), "relaxed"),
        "scope": next((x for x in words[1:] if x in ("cta", "cluster", "gpu", "sys")), "gpu"),
        "hint": "L2::cache_hint" in words, "combine": partial(combine, operation, words[-1]),
    }  # fmt: skip


_ORDERS = {"atom": "relaxed acquire release acq_rel", "red": "relaxed release"}
_OPEN = "what becomes of NaN and of subnormal numbers in memory"
_EXTREME = "the results of min and max in memory for NaN and zeros"


def _forms(name: str) -> tuple[Form, ...]:
    head = f"{name}[.<{_ORDERS[name]}>][.<cta cluster gpu sys>]"
    far, near, hint = "{.global}", ".<shared shared::cta shared::cluster>", "{.L2::cache_hint}"
    exact = partial(Form, kind=Atomic, fields=_fields, evidence=published(f"{name}: integers"))
    adds = partial(Form, kind=Atomic, fields=_fields, evidence=measured(f"{name}: floats", ATOMICS), left_open=_OPEN)
    extreme = partial(
        Form, kind=Atomic, fields=_fields, evidence=measured(f"{name}: floats", ATOMICS), left_open=_EXTREME
    )
    late, wide = partial(adds, since="sm_90", ptx=(7, 8)), partial(adds, since="sm_90", ptx=(8, 1))
    extreme = partial(extreme, since="sm_90", ptx=(8, 1))
    listed = [
        *(
            form
            for space, cached in ((far, hint), (near, ""))
            for form in (
                exact(spelling=f"{head}{space}.<and or xor>{cached}.<b32 b64>"),
                exact(spelling=f"{head}{space}.add{cached}.<u32 s32 u64>"),
                exact(spelling=f"{head}{space}.<inc dec>{cached}.u32"),
                exact(spelling=f"{head}{space}.<min max>{cached}.<u32 s32 u64 s64>"),
                adds(spelling=f"{head}{space}.add{cached}.<f32 f64>"),
                adds(spelling=f"{head}{space}.add.noftz{cached}.f16x2", ptx=(6, 2)),
                adds(spelling=f"{head}{space}.add.noftz{cached}.f16", ptx=(6, 3)),
                late(spelling=f"{head}{space}.add.noftz{cached}.<bf16 bf16x2>"),
            )
        ),
        wide(spelling=f"{head}{far}.add{hint}.<v2 v4>.f32"),
        wide(spelling=f"{head}{far}.add.noftz{hint}.<v2 v4 v8>.<f16 bf16>"),
        wide(spelling=f"{head}{far}.add.noftz{hint}.<v2 v4>.<f16x2 bf16x2>"),
        extreme(spelling=f"{head}{far}.<min max>.noftz{hint}.<v2 v4 v8>.<f16 bf16>"),
        extreme(spelling=f"{head}{far}.<min max>.noftz{hint}.<v2 v4>.<f16x2 bf16x2>"),
    ]
    if name == "red":
        return tuple(listed)
    for space, cached in ((far, hint), (near, "")):
        listed += [
            exact(spelling=f"{head}{space}.exch{cached}.<b32 b64>"),
            exact(spelling=f"{head}{space}.exch{cached}.b128", since="sm_90", ptx=(8, 3)),
        ]
    every = "{.<global shared shared::cta shared::cluster>}"
    listed += [
        exact(spelling=f"{head}{every}.cas.<b32 b64>"),
        exact(spelling=f"{head}{every}.cas.b16", ptx=(6, 3)),
        exact(spelling=f"{head}{every}.cas.b128", since="sm_90", ptx=(8, 3)),
    ]
    return tuple(listed)


FORMS = (*_forms("atom"), *_forms("red"))
"""Every form of this module."""
