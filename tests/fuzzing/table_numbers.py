"""Formats, registers and layouts."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from warpmma.formats import FORMATS, FloatFormat, IntegerFormat, Number, floating, integer
from warpmma.layouts import (
    TABLE_FORMATS,
    Cell,
    FragmentTable,
    Layout,
    Operand,
    accumulator,
    multiplicand,
    quad_pair,
    warpgroup,
)
from warpmma.machine import RegisterFile
from warpmma.registers import Packing

from . import legal
from .calls import Entry
from .hostile import Rng, chance, pick

__all__ = ["ENTRIES", "cell", "fragment_layout", "fragment_table", "packing"]

_FLOATS = tuple(f for f in FORMATS.values() if isinstance(f, FloatFormat))
_INTEGERS = tuple(f for f in FORMATS.values() if isinstance(f, IntegerFormat))
_ROUNDINGS = ("rn", "rz", "rm", "rp")
_SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (3,), (2, 3), (0,), (2, 0), (4, 8))


def _values(rng: Rng) -> Any:
    values = rng.standard_normal(pick(rng, _SHAPES)) * 10.0 ** int(rng.integers(-40, 40))
    if values.size and chance(rng, 0.3):
        values.flat[0] = pick(rng, (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e308, 5e-324))
    return pick(rng, (values, np.asarray(values), values.tolist()))


def _with_codes(name: str) -> Any:
    def make(forms: tuple[Any, ...]) -> Any:
        def arguments(rng: Rng) -> dict[str, Any]:
            form = pick(rng, forms)
            given = legal.codes(rng, form, pick(rng, _SHAPES))
            if name == "array" and chance(rng, 0.4):
                given = form.array(given)
            return {"self": form, name: given}

        return arguments

    return make


def _code(forms: tuple[Any, ...]) -> Any:
    def arguments(rng: Rng) -> dict[str, Any]:
        form = pick(rng, forms)
        return {"self": form, "code": int(legal.codes(rng, form, ()))}

    return arguments


def _named(forms: tuple[Any, ...], rng: Rng) -> dict[str, Any]:
    return {"name": pick(rng, forms).name}


def _encoded(forms: tuple[Any, ...]) -> Any:
    def arguments(rng: Rng) -> dict[str, Any]:
        given = {"self": pick(rng, forms), "values": _values(rng), "rounding": pick(rng, _ROUNDINGS)}
        if chance(rng, 0.3) and forms is _FLOATS:
            given["overflow"] = "saturate" if not given["self"].has_infinity else pick(rng, ("infinity", "saturate"))
        return given

    return arguments


def packing(rng: Rng) -> Packing:
    """Choose a packing."""
    slot = pick(rng, (1, 4, 8, 16, 32, 64))
    bits = int(rng.integers(1, slot + 1))
    return Packing(slot=slot, bits=bits, shift=int(rng.integers(slot - bits + 1)))


def fragment_layout(rng: Rng) -> Layout:
    """Make a layout of a warp's fragment, or of a warpgroup's."""
    operand: Operand = pick(rng, ("A", "B", "C", "D"))
    return legal.wgmma(rng).layout("D") if chance(rng, 0.3) else legal.record(rng).layout(operand)


def _packed(rng: Rng) -> dict[str, Any]:
    made = packing(rng)
    shape = (*legal.batch(rng), made.per_register)
    return {"self": made, "codes": rng.integers(0, 1 << min(made.bits, 62), shape).astype(made.dtype)}


def _unpacked(rng: Rng) -> dict[str, Any]:
    made = packing(rng)
    return {"self": made, "registers": rng.integers(0, 1 << 31, legal.batch(rng)).astype(made.dtype)}


def _file(rng: Rng) -> RegisterFile:
    made = RegisterFile(pick(rng, ((), (), (2,), (2, 3), (0,))))
    made.declare(32, "a", "b", "c")
    made.declare(64, "wide")
    made.declare(16, "half")
    made.declare("pred", "chosen")
    for name in "ab":
        made.write(name, np.arange(32))
    return made


def _where(rng: Rng) -> dict[str, Any]:
    return {"where": rng.random(32) < 0.5} if chance(rng, 0.5) else {}


def _place(rng: Rng) -> dict[str, Any]:
    layout = fragment_layout(rng)
    index = [int(rng.integers(n)) for n in layout.shape]
    return {"self": layout, "row": index[-2], "column": index[-1], **({"matrix": index[0]} if layout.matrix else {})}


def _table(rng: Rng) -> dict[str, Any]:
    return {"self": fragment_layout(rng), "by": pick(rng, ("element", "lane"))}


def fragment_table(rng: Rng) -> FragmentTable:
    """Make a table of a layout."""
    return FragmentTable(layout=fragment_layout(rng), by=pick(rng, ("element", "lane")))


def _register(rng: Rng) -> dict[str, Any]:
    layout = fragment_layout(rng)
    return {"self": layout, "lane": int(rng.integers(layout.lanes)), "register": int(rng.integers(layout.registers))}


def cell(rng: Rng) -> Cell:
    """Make what a look-up finds."""
    return fragment_layout(rng).holds(int(rng.integers(32)))[0]


def _law(rng: Rng) -> dict[str, Any]:
    i = legal.dense(rng)
    return {"operand": pick(rng, "AB"), "outer": pick(rng, (8, 16)), "k": 4 * i.packing("A").per_register,
            "packing": i.packing("A")}  # fmt: skip


def _parts(x: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(x, name) for name in names}


_F, _I, _L = (f"warpmma.{x}" for x in ("formats:FloatFormat", "formats:IntegerFormat", "layouts:Layout"))
_FT = "warpmma.layouts:FragmentTable"
_R = "warpmma:RegisterFile"
_P = "warpmma.registers:Packing"
_FLOAT_FIELDS = ("name", "exponent_bits", "fraction_bits", "bias", "signed", "subnormals", "nan", "overflow",
                 "dtype_name", "padding", "source")  # fmt: skip

ENTRIES = (
    Entry(name=f"{_F}.codes", call=FloatFormat.codes, make=_with_codes("array")(_FLOATS), weight=2),
    Entry(name=f"{_I}.codes", call=IntegerFormat.codes, make=_with_codes("array")(_INTEGERS), weight=2),
    Entry(name=f"{_F}.decode", call=FloatFormat.decode, make=_with_codes("codes")(_FLOATS), weight=2),
    Entry(name=f"{_I}.decode", call=IntegerFormat.decode, make=_with_codes("codes")(_INTEGERS), weight=2),
    Entry(name=f"{_F}.array", call=FloatFormat.array, make=_with_codes("codes")(_FLOATS), weight=2),
    Entry(name=f"{_I}.array", call=IntegerFormat.array, make=_with_codes("codes")(_INTEGERS), weight=2),
    Entry(name=f"{_F}.unpack", call=FloatFormat.unpack, make=_code(_FLOATS), weight=2),
    Entry(name=f"{_I}.unpack", call=IntegerFormat.unpack, make=_code(_INTEGERS), weight=2),
    Entry(name=f"{_F}.encode", call=FloatFormat.encode, make=_encoded(_FLOATS), weight=3),
    Entry(name=f"{_I}.encode", call=IntegerFormat.encode, make=_encoded(_INTEGERS), weight=3),
    Entry(name=_F, call=FloatFormat, make=lambda rng: _parts(pick(rng, _FLOATS), *_FLOAT_FIELDS)),
    Entry(
        name=_I, call=IntegerFormat,
        make=lambda rng: _parts(pick(rng, _INTEGERS), "name", "bits", "signed", "dtype_name", "source"),
    ),
    *(
        Entry(name=f"warpmma.formats:{f.__name__}", call=f, make=partial(_named, forms), weight=1.5)
        for f, forms in ((floating, _FLOATS), (integer, _INTEGERS))
    ),
    Entry(
        name="warpmma.formats:Number", call=Number,
        make=lambda rng: {"kind": "finite", "sign": 1, "significand": 3, "exponent": -2}, weight=0.2,
    ),
    Entry(name=_P, call=Packing, make=lambda rng: _parts(packing(rng), "slot", "bits", "shift"), weight=2),
    Entry(name=f"{_P}.pack", call=Packing.pack, make=_packed, weight=2),
    Entry(name=f"{_P}.unpack", call=Packing.unpack, make=_unpacked, weight=2),
    Entry(name=_R, call=RegisterFile, make=lambda rng: {"warps": pick(rng, ((), (2,), (2, 3)))}, weight=2),
    Entry(
        name=f"{_R}.declare", call=RegisterFile.declare, weight=2, pure=False,
        make=lambda rng: {"self": _file(rng), "width": pick(rng, (16, 32, 64, "pred")), "*names": ["x", "y"]},
    ),
    Entry(
        name=f"{_R}.write", call=RegisterFile.write, weight=3, pure=False, writes=("self",),
        make=lambda rng: {"self": _file(rng), "name": pick(rng, ("a", "b", "c", "wide")),
                          "values": rng.integers(0, 99, 32), **_where(rng)},
    ),
    Entry(
        name=f"{_R}.read", call=RegisterFile.read, weight=2,
        make=lambda rng: {"self": _file(rng), "name": pick(rng, ("a", "b", "c", "wide")), **_where(rng)},
    ),
    Entry(
        name=f"{_R}.write_fragment", call=RegisterFile.write_fragment, weight=2, pure=False, writes=("self",),
        make=lambda rng: {"self": _file(rng), "names": ["a", "b"], "fragment": rng.integers(0, 9, (2, 32))},
    ),
    Entry(
        name=f"{_R}.read_fragment", call=RegisterFile.read_fragment, weight=2,
        make=lambda rng: {"self": _file(rng), "names": ["a", "b"]},
    ),
    *(
        Entry(name=f"{_R}.{x}", call=getattr(RegisterFile, x), make=lambda rng: {"self": _file(rng), "name": "a"})
        for x in ("width", "written", "__contains__")
    ),
    *(
        Entry(name=f"{_R}.{x}", call=getattr(RegisterFile, x), make=lambda rng: {"self": _file(rng)}, weight=0.2)
        for x in ("__iter__", "__repr__")
    ),
    Entry(name=_L, call=Layout, make=lambda rng: _parts(
        fragment_layout(rng), "row", "column", "matrix", "packing", "lanes", "repeats"), weight=2),
    *(Entry(name=f"{_L}.{x}", call=getattr(Layout, x), make=_place, weight=3) for x in ("locate", "cell")),
    Entry(name=f"{_L}.holds", call=Layout.holds, make=_register, weight=3),
    Entry(
        name=f"{_L}.cells", call=Layout.cells, weight=0.3,
        make=lambda rng: {"self": fragment_layout(rng), "by": pick(rng, ("element", "lane"))},
    ),
    *(
        Entry(name=f"{_L}.{x}", call=getattr(Layout, x), weight=0.2, make=_table) for x in ("table", "svg")
    ),
    *(
        Entry(name=f"{_FT}.{x}", call=getattr(FragmentTable, x), make=lambda rng: {"self": fragment_table(rng)},
              weight=0.2)
        for x in TABLE_FORMATS
    ),
    Entry(name=_FT, call=FragmentTable, make=lambda rng: _parts(
        fragment_table(rng), *(x.name for x in fields(FragmentTable)))),
    Entry(
        name="warpmma.layouts:Cell", call=Cell,
        make=lambda rng: _parts(cell(rng), *(x.name for x in fields(Cell))),
    ),
    *(
        Entry(name=f"{_L}.{x}", call=getattr(Layout, x), make=lambda rng: {"self": fragment_layout(rng)}, weight=0.3)
        for x in ("words", "formulas")
    ),
    Entry(
        name="warpmma.layouts:warpgroup", call=warpgroup, weight=2,
        make=lambda rng: {"operand": pick(rng, "CD"), "size": 8 * int(rng.integers(1, 33)),
                          "packing": Packing(slot=16, bits=16)},
    ),
    Entry(name="warpmma.layouts:multiplicand", call=multiplicand, make=_law, weight=2),
    Entry(
        name="warpmma.layouts:accumulator", call=accumulator, weight=2,
        make=lambda rng: {"m": pick(rng, (8, 16)), "packing": Packing(slot=32, bits=32)},
    ),
    Entry(
        name="warpmma.layouts:quad_pair", call=quad_pair, weight=2,
        make=lambda rng: {"operand": pick(rng, "ABCD"), "layout": pick(rng, ("row", "col")),
                          "packing": Packing(slot=16, bits=16)},
    ),
)  # fmt: skip
