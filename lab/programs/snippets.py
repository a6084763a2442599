"""Pieces of random programs with several instructions: carries, fusion, memory, atomics, exchanges."""

from __future__ import annotations

from collections.abc import Callable

from .writing import BITS, Writer

__all__ = ["ANYWHERE", "COLLECTIVE", "MASKED", "UNIFORM"]

Snippet = Callable[[Writer], None]

OWN = 16
"""Bytes of shared memory of each thread; 64 in local memory, 64 in global memory."""


def carry(w: Writer) -> None:
    """Write a chain of additions, subtractions or products with carry."""
    kind = w.choose.of("rd")
    type_ = w.choose.of("us") + str(BITS[kind])
    name = w.choose.of(["add", "sub", "mad"] if kind == "r" else ["add", "sub"])
    length = 2 + w.choose.below(3)
    for i in range(length):
        last = i == length - 1
        if name == "mad":
            opcode = ("mad" if i == 0 else "madc") + f".{w.choose.of(['lo', 'hi'])}" + ("" if last else ".cc")
        else:
            opcode = name + ("" if i == 0 else "c") + ("" if last else ".cc")
        operands: list[str] = []
        while len(operands) < (3 if name == "mad" else 2):
            register = w.register(kind)
            operands += [register] * (register not in operands)
        w(f"{opcode}.{type_} {w.register(kind)}, {', '.join(operands)};")
        if not last and w.choose.chance(20):
            w(f"add.rn.f32 {w.register('r')}, {w.register('r')}, {w.register('r')};")


def pack(w: Writer) -> None:
    """Write `mov` between a register and a vector of its parts."""
    wide, narrow, count = w.choose.of([("d", "r", 2), ("d", "h", 4), ("r", "h", 2)])
    if w.choose.chance(50):
        parts = [w.register(narrow) for _ in range(count)]
        w(f"mov.b{BITS[wide]} {w.register(wide)}, {{{', '.join(parts)}}};")
    else:
        first = w.choose.below(4)
        parts = [f"%{narrow}{first + i}" for i in range(count)]
        if w.choose.chance(30):
            parts[w.choose.below(count)] = "_"
        w(f"mov.b{BITS[wide]} {{{', '.join(parts)}}}, {w.register(wide)};")


def _either_way(w: Writer, *both: str) -> str:
    return ", ".join(both[:: w.choose.of([1, -1])])


def fused(w: Writer) -> None:
    """Write products and sums without a rounding: some that ptxas fuses, and some that it does not."""
    type_, kind = w.choose.of([("f32", "r"), ("f64", "d"), ("f16", "h"), ("f16x2", "r"), ("f32", "r")])
    ftz = ".ftz" if type_ != "f64" and w.choose.chance(30) else ""
    a, b, c, e = (w.register(kind) for _ in range(4))
    if type_ == "f64":
        a, b, c, e = (w.number(x, "finite") for x in (a, b, c, e))
    x, y, p, q = (w.temporary(kind) for _ in range(4))
    plus = w.choose.of(["add", "sub"])
    mul, add = f"mul{ftz}.{type_}", f"{plus}{ftz}.{type_}"
    pattern = w.choose.below(14)
    w(f"{mul} {p}, {a}, {b};")
    if pattern == 0:
        w(f"{add} {x}, {_either_way(w, p, c)};", f"mov.b{BITS[kind]} {y}, {x};")
    elif pattern == 1:  # two sums of one product
        w(f"{add} {x}, {_either_way(w, p, c)};", f"add{ftz}.{type_} {y}, {_either_way(w, p, e)};")
    elif pattern == 2:  # another use
        use = w.choose.of([f"max.{type_} {y}, {p}, {e};", f"mul.rn{ftz}.{type_} {y}, {p}, {e};",
                           f"fma.rn{ftz}.{type_} {y}, {c}, {e}, {p};", f"add.rn{ftz}.{type_} {y}, {p}, {e};",
                           f"abs.{type_} {y}, {p};"])  # fmt: skip
        w(f"{add} {x}, {_either_way(w, p, c)};", use)
    elif pattern == 3:  # seen through
        w(f"neg.{type_} {q}, {p};", f"{add} {x}, {_either_way(w, q, c)};", f"mov.b{BITS[kind]} {y}, {x};")
    elif pattern == 4:
        w(f"mov.b{BITS[kind]} {q}, {p};", f"{add} {x}, {_either_way(w, q, c)};", f"mov.b{BITS[kind]} {y}, {x};")
    elif pattern == 5:  # the first of two products
        w(f"{mul} {q}, {c}, {e};", f"{add} {x}, {p}, {q};", f"mov.b{BITS[kind]} {y}, {x};")
    elif pattern == 6:  # the first has another use
        w(f"{mul} {q}, {c}, {e};", f"{add} {x}, {p}, {q};", f"max.{type_} {y}, {p}, {c};")
    elif pattern == 7:
        w(f"add{ftz}.{type_} {x}, {p}, {p};", f"mov.b{BITS[kind]} {y}, {x};")
    elif pattern == 8:  # three
        r, s = w.temporary(kind), w.temporary(kind)
        w(f"{mul} {q}, {c}, {e};", f"{mul} {r}, {a}, {e};", f"add{ftz}.{type_} {s}, {p}, {q};",
          f"add{ftz}.{type_} {x}, {s}, {r};", f"mov.b{BITS[kind]} {y}, {x};")  # fmt: skip
    elif pattern == 9 and type_ != "f64":  # ftz on one alone
        w(f"{plus}{'' if ftz else '.ftz'}.{type_} {x}, {_either_way(w, p, c)};", f"mov.b{BITS[kind]} {y}, {x};")
    elif pattern == 10 and type_ != "f64":
        w(f"{plus}{ftz}.sat.{type_} {x}, {_either_way(w, p, c)};", f"mov.b{BITS[kind]} {y}, {x};")
    elif pattern == 11:  # fma, and then a sum
        w(
            f"fma.rn{ftz}.{type_} {q}, {a}, {c}, {p};",
            f"{add} {x}, {_either_way(w, q, e)};",
            f"mov.b{BITS[kind]} {y}, {x};",
        )
    elif pattern == 12:  # the sum is predicated
        w(
            f"mov.b{BITS[kind]} {x}, {e};",
            f"@{w.register('p')} {add} {x}, {_either_way(w, p, c)};",
            f"mov.b{BITS[kind]} {y}, {x};",
        )
    else:  # in a chain of sums
        w(f"{add} {q}, {p}, {c};", f"mul{ftz}.{type_} {x}, {q}, {e};", f"{add} {y}, {_either_way(w, x, a)};")
        w(f"mov.b{BITS[kind]} {x}, {q};")
    _settle(w, kind, y)
    _settle(w, kind, x)


def _settle(w: Writer, kind: str, x: str) -> None:
    """Write a sum to a register through memory: ptxas may recompute values in other blocks, fused or not."""
    bits = BITS[kind]
    at = w.choose.below(512 // bits) * bits // 8
    w(f"st.global.b{bits} [%global+{at}], {x};", f"ld.volatile.global.b{bits} {w.register(kind)}, [%global+{at}];")


def fused_quotient(w: Writer) -> None:
    """Write approximate quotients, roots and powers before sums."""
    name = w.choose.of(["div.full", "div.approx", "sqrt.approx", "ex2.approx"])
    x, y = w.temporary("r"), w.temporary("r")
    operands = ", ".join(w.register("r") for _ in range(1 + name.startswith("div")))
    w(f"{name}.f32 {x}, {operands};", f"{w.choose.of(['add', 'sub'])}.f32 {y}, {x}, {w.register('r')};")
    _settle(w, "r", y)


def _place(w: Writer, base: str, kind: str, bytes_: int) -> str:
    """Return an address in brackets: within 16 or 64 bytes of a base in a 32- or 64-bit register."""
    size = {"local": 64, "shared": OWN, "global": 64}[kind]
    if w.choose.chance(50):
        return f"[{base}+{w.choose.below(size // bytes_) * bytes_}]"
    offset = w.limited("r", size - 1 & ~(bytes_ - 1))
    at = w.temporary("d")
    w(f"cvt.u64.u32 {at}, {offset};", f"add.u64 {at}, {base}, {at};")
    return f"[{at}]"


_BASES = {"local": "%local", "shared": "%shared", "global": "%global"}
_TYPES = [("b8", "r", 1), ("u8", "h", 1), ("s8", "r", 1), ("u16", "h", 2), ("s16", "r", 2), ("b32", "r", 4),
          ("f32", "r", 4), ("u32", "d", 4), ("s32", "d", 4), ("b64", "d", 8), ("f64", "d", 8)]  # fmt: skip


def memory(w: Writer) -> None:
    """Write a load or a store of this thread's own memory, in any space, by any kind of address, with any operators."""
    space = w.choose.of(["local", "shared", "global"])
    type_, kind, size = w.choose.of(_TYPES)
    count = w.choose.of([1, 1, 1, 2, 4])
    while size * count > 16:
        count //= 2
    vector = f".v{count}" if count > 1 else ""
    generic, load = w.choose.chance(25), w.choose.chance(50)
    how = ""
    if not generic:
        if w.choose.chance(15) and space != "local":
            how = w.choose.of(
                [".volatile", ".relaxed.cta", ".relaxed.gpu"] + ([".acquire.gpu"] if load else [".release.gpu"])
            )
        elif space == "global" and w.choose.chance(30):
            how = w.choose.of([".ca", ".cg", ".cs", ".cv", ".lu"] if load else [".wb", ".cg", ".cs", ".wt"])
    base = f"%generic_{space}" if generic else _BASES[space]
    at = _place(w, base, space, size * count)
    if "." not in how[1:] and how in (".ca", ".cg", ".cs", ".cv", ".lu", ".wb", ".wt"):
        opcode = f".{space}{how}{vector}.{type_}"
    else:
        opcode = f"{how}{'' if generic else '.' + space}{vector}.{type_}"
    first = w.choose.below(4)
    registers = [f"%{kind}{first + i}" for i in range(count)]
    if not load and size * 8 < BITS[kind]:  # of a float, ptxas may store the integer value
        registers = [w.opaque(register, kind) for register in registers]
    value = f"{{{', '.join(registers)}}}" if count > 1 else registers[0]
    guard = f"@{w.register('p')} " if w.choose.chance(10) else ""
    w(f"{guard}ld{opcode} {value}, {at};" if load else f"{guard}st{opcode} {at}, {value};")
    if load and type_ in ("s8", "s16"):  # ptxas may take what another instruction reads as unsigned for signed
        w(*(f"xor.b{BITS[kind]} {register}, {register}, %zero_{kind};" for register in registers))


def constant(w: Writer) -> None:
    """Write a load of read-only data: parameters, tables in constant and global memory, input."""
    type_, kind, size = w.choose.of(_TYPES)
    where = w.choose.below(4)
    if where == 0:
        w(f"ld.param.{type_} {w.register(kind)}, [NAME_param_2+{w.choose.below(32 // size) * size}];")
        return
    at, offset = w.temporary("d"), w.limited("r", 63 & ~(size - 1))
    w(f"cvt.u64.u32 {at}, {offset};")
    if where == 1:
        w(f"add.u64 {at}, {at}, %constants;", f"ld.const.{type_} {w.register(kind)}, [{at}];")
    elif where == 2:
        w(f"add.u64 {at}, {at}, %tables;", f"ld.global.{type_} {w.register(kind)}, [{at}+64];")
    else:
        how = w.choose.of([".nc", ".ca", ".nc.L1::no_allocate", ".L2::128B", ".nc.L2::64B"])
        w(f"add.u64 {at}, {at}, %input;", f"ld.global{how}.{type_} {w.register(kind)}, [{at}];")


_ATOMS = {
    "add": ["u32", "s32", "u64", "f32", "f64", "noftz.f16x2"], "min": ["u32", "s32", "u64", "s64"],
    "max": ["u32", "s32", "u64", "s64"], "and": ["b32", "b64"], "or": ["b32", "b64"], "xor": ["b32", "b64"],
    "exch": ["b32", "b64"], "cas": ["b32", "b64", "b16"], "inc": ["u32"], "dec": ["u32"],
}  # fmt: skip


def atomic(w: Writer) -> None:
    """Write an atomic operation on this thread's own memory."""
    space, name = w.choose.of(["shared", "global"]), w.choose.of(list(_ATOMS))
    type_ = w.choose.of(_ATOMS[name])
    kind = "h" if type_ == "b16" else "d" if type_.endswith("64") else "r"
    generic = w.choose.chance(20)
    how = w.choose.of(["", "", ".relaxed", ".acq_rel.gpu", ".release.cta", ".acquire.sys"])
    at = _place(w, f"%generic_{space}" if generic else _BASES[space], space, BITS[kind] // 8)
    opcode = f"{how}{'' if generic else '.' + space}.{name}.{type_}"
    operands = ", ".join(w.register(kind) for _ in range(1 + (name == "cas")))
    if name not in ("exch", "cas") and how not in (".acq_rel.gpu", ".acquire.sys") and w.choose.chance(40):
        w(f"red{opcode} {at}, {operands};")
    else:
        w(f"atom{opcode} {w.register(kind)}, {at}, {operands};")


def common(w: Writer) -> None:
    """Write a reduction into common shared memory: always the same one for each word, so that order does not matter."""
    place, name, type_ = w.choose.of([(0, "add", "u32"), (4, "min", "u32"), (8, "max", "s32"), (12, "xor", "b32"),
                                      (16, "and", "b32"), (20, "or", "b32")])  # fmt: skip
    w(f"red.shared.{name}.{type_} [NAME_common+{place}], {w.register('r')};")


def special(w: Writer) -> None:
    """Write a read of a special register."""
    name = w.choose.of(["tid.x", "tid.y", "ntid.x", "ntid.z", "ctaid.x", "ctaid.z", "nctaid.x", "laneid", "lanemask_eq",
                        "lanemask_lt", "lanemask_le", "lanemask_gt", "lanemask_ge"])  # fmt: skip
    value = w.temporary("r")
    w(f"mov.u32 {value}, %{name};")  # ptxas derives wrong values from what it knows to be uniform
    w(f"mov.b32 {w.register('r')}, {w.opaque(value, 'r')};")


def space(w: Writer) -> None:
    """Write an `isspacep`."""
    w(f"isspacep.{w.choose.of(['local', 'shared', 'global', 'const'])} {w.register('p')}, "
      f"%generic_{w.choose.of(['local', 'shared', 'global'])};")  # fmt: skip


def copy(w: Writer) -> None:
    """Write an asynchronous copy into this thread's own memory."""
    size = w.choose.of([4, 8, 16])
    how = "cg" if size == 16 and w.choose.chance(50) else "ca"
    ignored = f", {w.choose.below(size + 1)}" if w.choose.chance(40) else ""
    at, offset = w.temporary("d"), w.limited("r", 63 & ~(size - 1))
    w(f"cvt.u64.u32 {at}, {offset};", f"add.u64 {at}, {at}, %input;",
      f"cp.async.{how}.shared.global [%shared+{w.choose.below(OWN // size) * size}], [{at}], {size}{ignored};",
      *w.choose.of([("cp.async.wait_all;",), ("cp.async.commit_group;", "cp.async.wait_group 0;")]))  # fmt: skip


def shuffle(w: Writer) -> None:
    """Write `shfl` of all lanes."""
    mode = w.choose.of(["up", "down", "bfly", "idx"])
    lanes = w.choose.of([str(w.choose.below(32)), w.limited("r", 31)])
    clamp = w.choose.of(["0"] * 2 + ["0x1C00", "0x1807"] if mode == "up" else ["0x1F", "0x1F", "0x1C1F", "0x181F"])
    result = w.register("r") + (f"|{w.register('p')}" if w.choose.chance(50) else "")
    w(f"shfl.sync.{mode}.b32 {result}, {w.register('r')}, {lanes}, {clamp}, 0xFFFFFFFF;")


def votes(w: Writer) -> None:
    """Write a vote, match or reduction of the lanes of a mask."""
    mask = f"{w.mask:#x}"
    negated = "!" * w.choose.below(2) + w.register("p")
    forms = [f"vote.sync.{w.choose.of(['all', 'any', 'uni'])}.pred {w.register('p')}, {negated}, {mask};",
             f"vote.sync.ballot.b32 {w.register('r')}, {negated}, {mask};",
             f"redux.sync.{w.choose.of(['add', 'min', 'max'])}.{w.choose.of(['u32', 's32'])} {w.register('r')}, "
             f"{w.register('r')}, {mask};",
             f"redux.sync.{w.choose.of(['and', 'or', 'xor'])}.b32 {w.register('r')}, {w.register('r')}, {mask};",
             f"bar.warp.sync {mask};"]  # fmt: skip
    for bits in (32, 64):
        kind = "r" if bits == 32 else "d"
        small = w.limited(kind, 3)
        forms += [f"match.any.sync.b{bits} {w.register('r')}, {small}, {mask};",
                  f"match.all.sync.b{bits} {w.register('r')}|{w.register('p')}, {small}, {mask};"]  # fmt: skip
    w(w.choose.of(forms))


def exchange(w: Writer) -> None:
    """Write barriers, and between them reads of other threads' shared memory."""
    other, at = w.limited("r", 63), w.temporary("d")
    barrier = w.choose.of(["bar.sync 0;", "barrier.sync 1;", "bar.sync 2, 64;", "barrier.cta.sync.aligned 3, 64;"])
    w("bar.warp.sync 0xFFFFFFFF;")
    w(barrier, f"mul.wide.u32 {at}, {other}, {OWN};", f"add.u64 {at}, {at}, %all_shared;")
    how = w.choose.of(["b32", "b64", "v4.b32"])
    value = {"b32": w.register("r"), "b64": w.register("d"), "v4.b32": "{%r1, %r5, %r2, %r9}"}[how]
    w(f"ld.shared.{how} {value}, [{at}];", "bar.warp.sync 0xFFFFFFFF;", barrier)


def block_votes(w: Writer) -> None:
    """Write a barrier that reduces predicates."""
    w("bar.warp.sync 0xFFFFFFFF;")
    name, kind = w.choose.of([("popc.u32", "r"), ("and.pred", "p"), ("or.pred", "p")])
    w(f"barrier.cta.red.{name} {w.register(kind)}, 0, {'!' * w.choose.below(2)}{w.register('p')};")


def matrices(w: Writer) -> None:
    """Write `ldmatrix` of rows of any threads, `movmatrix`, or a matrix product."""
    which = w.choose.below(6)
    w("bar.warp.sync 0xFFFFFFFF;")
    if which == 0:
        count = w.choose.of([1, 2, 4])
        at, row = w.temporary("d"), w.limited("r", 63)
        vector = ", ".join(f"%r{3 + i}" for i in range(count))
        w("bar.sync 0;", f"mul.wide.u32 {at}, {row}, {OWN};", f"add.u64 {at}, {at}, %all_shared;")
        w(
            f"ldmatrix.sync.aligned.m8n8.x{count}{w.choose.of(['', '.trans'])}.shared.b16 {{{vector}}}, [{at}];",
            "bar.sync 0;",
        )
    elif which == 1:
        w(f"movmatrix.sync.aligned.m8n8.trans.b16 {w.register('r')}, {w.register('r')};")
    elif which == 2:
        w("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, "
          "{%r10, %r11, %r12, %r13};")  # fmt: skip
    elif which == 3:
        w("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d0, %d1}, {%d2}, {%d3}, {%d4, %d5};")
    elif which == 4:
        w("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%r2, %r3, %r4, %r5}, {%r6, %r7, %r8, %r9}, "
          "{%r10, %r11}, {%r0, %r1, %r12, %r13};")  # fmt: skip
    else:
        w("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%r6, %r7, %r8, %r9}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, "
          "{%r10, %r11, %r12, %r13};")  # fmt: skip


ANYWHERE: list[Snippet] = [carry, pack, fused, fused, fused, fused_quotient, memory, memory, memory, constant, atomic,
                           common, special, space, copy]  # fmt: skip
"""Pieces for a single lane."""

MASKED: list[Snippet] = [votes]
"""Pieces for the lanes of a known mask."""

COLLECTIVE: list[Snippet] = [shuffle, shuffle, votes, votes]
"""Pieces for all lanes of a warp."""

UNIFORM: list[Snippet] = [exchange, exchange, block_votes, matrices]
"""Pieces for all threads of a block."""
