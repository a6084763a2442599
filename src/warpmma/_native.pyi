"""What `native/module.cpp` binds, for `native.py`, `functions.py` and `native_elements.py` of `arithmetic`.

A test compares.
"""

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

class Unit(IntEnum):
    FusedDotAdd = ...
    GroupedDotAdd = ...
    FmaChain = ...
    FloatChains = ...
    IntegerSum = ...
    Popcount = ...

class Rounding(IntEnum):
    rn = ...
    rz = ...
    rm = ...
    rp = ...

class Law(IntEnum):
    rcp = ...
    rsqrt = ...
    sqrt = ...
    ex2 = ...
    lg2 = ...
    sin = ...
    cos = ...
    tanh = ...

class After(IntEnum):
    nothing = ...
    multiply = ...
    add = ...
    square = ...

class ElementOp(IntEnum):
    add = ...
    sub = ...
    mul = ...
    fma = ...
    min = ...
    max = ...
    div = ...
    rcp = ...
    sqrt = ...
    convert = ...
    compare = ...
    quotient = ...
    remainder = ...
    permute = ...
    extract = ...

class Element(IntEnum):
    f16 = ...
    bf16 = ...
    f32 = ...
    f64 = ...
    s32 = ...
    u32 = ...
    pred = ...
    s64 = ...
    u64 = ...

class Comparison(IntEnum):
    eq = ...
    ne = ...
    lt = ...
    le = ...
    gt = ...
    ge = ...
    num = ...
    nan = ...

class Format:
    integer: bool
    width: int
    fraction_bits: int
    emin: int
    nominal_emin: int
    magnitude: int
    special_from: int
    infinity: int
    is_signed: bool

class Table:
    word: list[int]
    shift: list[int]
    mask: int

class Parameters:
    unit: int
    a: Format
    b: Format
    c: Format
    d: Format
    fraction_bits: int
    floor: int
    result_bits: int
    nearest: bool
    after: bool
    k: int
    b_k: int
    step: int
    steps: int
    seeded: bool
    saturate: bool
    exclusive: bool
    rounding: int
    scales: int
    sparse: bool
    order: list[int]
    scale_value: list[float]
    scale_exponent: list[int]
    width: int
    rows: int
    matrices: int
    registers: int
    per_register: int
    a_table: Table
    b_table: Table
    c_table: Table
    d_flat: list[int]
    d_shift: list[int]

class Plan:
    """Parameters that were found right, in a copy that no longer changes; `ValueError` if they are not."""

    def __init__(self, parameters: Parameters, /) -> None: ...

class Scaling:
    mask: int
    first: int
    last: int
    before: float
    after: int
    number: float

class Step:
    a: int
    b: int
    c: int
    negate: bool

class Kept:
    mask: int
    first: int
    last: int
    keep: int
    put: int

class FunctionParameters:
    law: int
    upper: bool
    wide: bool
    bits: int
    rows: list[int]
    first: list[int]
    drop: list[int]
    factor: float
    scalings: list[Scaling]
    dividend: bool
    ftz: bool
    numbers: list[float]
    steps: list[Step]
    special: list[Kept]

class FunctionPlan:
    """The same of a function of the special-function unit."""

    def __init__(self, parameters: FunctionParameters, /) -> None: ...

class ElementParameters:
    op: int
    source: int
    result: int
    rounding: int
    comparison: int
    unordered: bool
    integral: bool
    flush: bool
    flush_result: bool
    saturate: bool
    finite: bool
    rectify: bool
    keep_nan: bool
    magnitudes: bool

class ElementPlan:
    """The same of what is computed element by element."""

    def __init__(self, parameters: ElementParameters, /) -> None: ...

def levels() -> list[tuple[str, int, int, int]]: ...
def execute(
    plan: Plan, level: int, a: Array, b: Array, c: Array, d: npt.NDArray[np.unsignedinteger[Any]], registers: bool,
    m: int, n: int, k: int, chosen: Array | None, scale_a: Array | None, scale_b: Array | None,
    ends: Sequence[tuple[int, bool]] = (), sums: npt.NDArray[np.uint32] | None = None, /,
) -> None: ...  # fmt: skip
def execute_function(
    plan: FunctionPlan, level: int, codes: Array, dividend: Array | None, out: npt.NDArray[np.unsignedinteger[Any]], /
) -> None: ...
def execute_elements(
    plan: ElementPlan, level: int, a: Array | None, b: Array | None, c: Array | None,
    out: npt.NDArray[np.unsignedinteger[Any]], parts: int, part: int, /,
) -> None: ...  # fmt: skip

class memory:  # noqa: N801 - a module
    """What simulated memory does for every lane: a module of its own, whose arrays are flat."""

    @staticmethod
    def locate(
        address: npt.NDArray[np.unsignedinteger[Any]], lanes: npt.NDArray[np.bool_], starts: npt.NDArray[np.uint64],
        ends: npt.NDArray[np.uint64], size: int, alignment: int, offset: npt.NDArray[np.int64], /,
    ) -> tuple[int, int]: ...  # fmt: skip
    @staticmethod
    def gather(memory: Array, offset: npt.NDArray[np.int64], size: int, out: npt.NDArray[np.uint8], /) -> None: ...
    @staticmethod
    def join(words: list[npt.NDArray[np.uint8]], width: int, out: npt.NDArray[np.uint8], /) -> None: ...
    @staticmethod
    def split(data: Array, count: int, width: int, out: npt.NDArray[np.uint8], /) -> None: ...
    @staticmethod
    def scatter(memory: npt.NDArray[np.uint8], offset: npt.NDArray[np.int64], size: int, data: Array, /) -> None: ...
    @staticmethod
    def store(
        memory: npt.NDArray[np.uint8], offset: npt.NDArray[np.int64], size: int, data: Array,
        lanes: npt.NDArray[np.bool_], part: int, /,
    ) -> None: ...  # fmt: skip
    @staticmethod
    def alike(rows: npt.NDArray[np.int64], width: int, first: npt.NDArray[np.int64], /) -> None: ...

class grains:  # noqa: N801 - a module
    """What is known of grains, for every lane: a module of its own, whose arrays are flat; so many from each first."""

    @staticmethod
    def ordered(
        table: npt.NDArray[np.uint64], first: npt.NDArray[np.int64], each: int, words: npt.NDArray[np.uint64],
        thread_bit: int, block_bit: int, time_bit: int, last_time: int, floor: int, /,
    ) -> bool: ...  # fmt: skip
    @staticmethod
    def note(
        table: npt.NDArray[np.uint64], first: npt.NDArray[np.int64], each: int, words: npt.NDArray[np.uint64], /
    ) -> bool: ...
    @staticmethod
    def count_readers(
        last: npt.NDArray[np.uint64], lane: npt.NDArray[np.uint64], other: npt.NDArray[np.uint64],
        first: npt.NDArray[np.int64], each: int, words: npt.NDArray[np.uint64], thread_bit: int, warp_bit: int,
        block_bit: int, /,
    ) -> None: ...  # fmt: skip
    @staticmethod
    def all_set(flags: npt.NDArray[np.bool_], first: npt.NDArray[np.int64], each: int, /) -> bool: ...
    @staticmethod
    def none(table: npt.NDArray[np.uint64], first: npt.NDArray[np.int64], each: int, /) -> bool: ...
    @staticmethod
    def fill(
        table: npt.NDArray[np.uint64] | npt.NDArray[np.bool_], first: npt.NDArray[np.int64], each: int,
        value: int | bool, /,
    ) -> None: ...  # fmt: skip
