"""PTX that copies boxes of tensors, one case for each block, and PTX that rewrites tensor maps.

`load` fills shared memory with a pattern, loads one box, waits, counts the bytes that its mbarrier got, and dumps
shared memory. `store` fills shared memory from an array and stores one box. `replace` applies `tensormap.replace` to
128 bytes. An order is 16 words of 32 bits: kind (the rank of a tiled map, 10 + rank of im2col), five coordinates and
three offsets, innermost first, and the address of the box from the beginning of the region.
"""

from __future__ import annotations

__all__ = ["KINDS", "ORDER_WORDS", "PATTERN", "READY", "REGION", "REPLACEMENTS", "module_text"]

REGION = 32 << 10
"""Bytes of shared memory that are filled and dumped."""
ORDER_WORDS = 16
PATTERN = 0x9E3779B1
"""Word i of the region begins as `i * PATTERN`, so that a gap shows."""
KINDS = (1, 2, 3, 4, 5, 13, 14, 15)
_STEP, _STEPS = 4, 24 << 10  # bytes of a probe of the mbarrier, and probes
_WAIT = 200_000  # ns

_REGISTER_FIELDS = {"global_address": ("b64", 0), "rank": ("b32", 0), "box_dim": ("b32", 5), "global_dim": ("b32", 5),
                    "global_stride": ("b64", 4), "element_stride": ("b32", 5)}  # fmt: skip
_IMMEDIATE_FIELDS = {"elemtype": 13, "interleave_layout": 3, "swizzle_mode": 4, "fill_mode": 2}
REPLACEMENTS: tuple[tuple[str, int | None, int | None], ...] = (
    *((name, None if not n else i, None) for name, (_, n) in _REGISTER_FIELDS.items() for i in range(max(n, 1))),
    *((name, None, value) for name, n in _IMMEDIATE_FIELDS.items() for value in range(n)),
)
"""What `replace` can do, by code: field, ordinal, and the value where PTX takes an immediate alone."""

_HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 region[];\n"

_START = """
    mov.u32 %lane, %tid.x; mov.u32 %case, %ctaid.x; mov.u32 %base, region;
    ld.param.u64 %map, [p0]; mul.wide.u32 %off, %case, 128; add.u64 %map, %map, %off;
    ld.param.u64 %order, [p1]; mul.wide.u32 %off, %case, 64; add.u64 %order, %order, %off;
    ld.param.u64 %dump, [p2]; mul.wide.u32 %off, %case, REGION; add.u64 %dump, %dump, %off;
"""
_ORDERED = """
    ld.global.u32 %kind, [%order]; ld.global.u32 %at, [%order+36]; add.u32 %at, %at, %base;
    ld.global.u32 %c0, [%order+4]; ld.global.u32 %c1, [%order+8]; ld.global.u32 %c2, [%order+12];
    ld.global.u32 %c3, [%order+16]; ld.global.u32 %c4, [%order+20];
    ld.global.u16 %o0, [%order+24]; ld.global.u16 %o1, [%order+28]; ld.global.u16 %o2, [%order+32];
"""
_REGISTERS = """
    .reg .u32 %lane, %case, %base, %i, %x, %kind, %at, %c0, %c1, %c2, %c3, %c4, %n, %bar, %code, %value;
    .reg .u16 %o0, %o1, %o2; .reg .u64 %map, %order, %dump, %off, %p, %begin, %now, %wide, %results;
    .reg .pred %q, %done;
"""
READY = """\
    fence.proxy.async;
    setp.ne.u32 %done, %lane, 0;
    @%done bra ready;
    mbarrier.init.shared::cta.b64 [%bar], 1;
    fence.mbarrier_init.release.cluster;
    fence.proxy.async;
ready:
    bar.sync 0;
"""
"""Thread 0 initialises the mbarrier at %bar for one arrival; threads and copies see it, and all earlier writes.

Afterwards %done is true in threads other than 0.
"""


def _parameters(name: str) -> str:
    return f".visible .entry {name}(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)\n{{{_REGISTERS}"


def _copies(*, store: bool) -> str:
    """Write one copy for each kind, behind a branch."""
    lines = []
    for kind in KINDS:
        rank = kind % 10
        coordinates = ", ".join(f"%c{i}" for i in range(rank))
        offsets = ", ".join(f"%o{i}" for i in range(rank - 2))
        lines += [f"setp.ne.u32 %q, %kind, {kind};", f"@%q bra not_{kind};"]
        if store:
            mode = ".im2col_no_offs" if kind > 10 else ".tile"
            lines.append(
                f"cp.async.bulk.tensor.{rank}d.global.shared::cta{mode}.bulk_group [%map, {{{coordinates}}}], [%at];"
            )
        else:
            mode, more = (".im2col", f", {{{offsets}}}") if kind > 10 else (".tile", "")
            lines.append(
                f"cp.async.bulk.tensor.{rank}d.shared::cluster.global{mode}.mbarrier::complete_tx::bytes [%at], "
                f"[%map, {{{coordinates}}}], [%bar]{more};"
            )
        lines += [f"not_{kind}:"]
    return "\n    ".join(lines)


def _looped(label: str, body: str, bytes_: int) -> str:
    """Write a loop of 128 threads over words of 32 bits: byte %i."""
    return f"""
    shl.b32 %i, %lane, 2;
{label}:
    {body}
    add.u32 %i, %i, 512; setp.lt.u32 %q, %i, {bytes_}; @%q bra {label};
"""


def _load() -> str:
    fill = f"shr.u32 %x, %i, 2; mul.lo.u32 %x, %x, {PATTERN}; add.u32 %n, %base, %i; st.shared.u32 [%n], %x;"
    dump = "add.u32 %n, %base, %i; ld.shared.u32 %x, [%n]; cvt.u64.u32 %off, %i; add.u64 %p, %dump, %off;\n    "
    dump += "st.global.u32 [%p], %x;"
    return f"""{_parameters("load")}
    .shared .align 8 .b64 barrier;
    {_START}{_ORDERED}
    mov.u32 %bar, barrier;
    {_looped("filling", fill, REGION)}
{READY}    @%done bra waiting;
    {_copies(store=False)}
    mov.u64 %begin, %globaltimer;
sleeping:
    nanosleep.u32 10000;
    mov.u64 %now, %globaltimer; sub.u64 %now, %now, %begin; setp.lt.u64 %q, %now, {_WAIT}; @%q bra sleeping;
    mbarrier.arrive.shared::cta.b64 _, [%bar];
    mov.u32 %i, 0;
probing:
    mbarrier.test_wait.parity.shared::cta.b64 %q, [%bar], 0;
    @%q bra counted;
    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%bar], {_STEP};
    add.u32 %i, %i, {_STEP}; setp.lt.u32 %q, %i, {_STEP * _STEPS}; @%q bra probing;
counted:
    ld.param.u64 %results, [p3]; mul.wide.u32 %off, %case, 8; add.u64 %results, %results, %off;
    st.global.u32 [%results], %i; st.global.u32 [%results+4], %base;
waiting:
    bar.sync 0;
    {_looped("dumping", dump, REGION)}
    ret;
}}
"""


def _store() -> str:
    fill = "cvt.u64.u32 %off, %i; add.u64 %p, %dump, %off; ld.global.u32 %x, [%p]; add.u32 %n, %base, %i;\n    "
    fill += "st.shared.u32 [%n], %x;"
    return f"""{_parameters("store")}
    .shared .align 8 .b64 unused;
    {_START}{_ORDERED}
    mov.u32 %bar, unused; st.shared.u32 [%bar], 0;
    {_looped("filling", fill, REGION)}
    fence.proxy.async;
    bar.sync 0;
    setp.ne.u32 %done, %lane, 0;
    @%done bra end;
    {_copies(store=True)}
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
    ld.param.u64 %results, [p3]; mul.wide.u32 %off, %case, 8; add.u64 %results, %results, %off;
    st.global.u32 [%results], 1; st.global.u32 [%results+4], %base;
end:
    ret;
}}
"""


def _replace() -> str:
    """Orders are 16 words: a count, and up to five triples of a code and the two halves of a value."""
    steps = []
    for code, (field, ordinal, value) in enumerate(REPLACEMENTS):
        width = _REGISTER_FIELDS.get(field, ("b32", 0))[0]
        given = str(value) if value is not None else "%wide" if width == "b64" else "%value"
        place = "" if ordinal is None else f"{ordinal}, "
        steps += [
            f"setp.ne.u32 %q, %code, {code};", f"@%q bra after_{code};",
            f"tensormap.replace.tile.{field}.shared::cta.b1024.{width} [%base], {place}{given};", f"after_{code}:",
        ]  # fmt: skip
    body = "\n    ".join(steps)
    move = "add.u32 %n, %base, %i; {}"
    into = move.format("cvt.u64.u32 %off, %i; add.u64 %p, %map, %off; ld.global.u32 %x, [%p]; st.shared.u32 [%n], %x;")
    back = move.format("cvt.u64.u32 %off, %i; add.u64 %p, %map, %off; ld.shared.u32 %x, [%n]; st.global.u32 [%p], %x;")
    return f"""{_parameters("replace")}
    {_START}
    setp.ge.u32 %done, %lane, 32; @%done bra end;
    {_looped("taking", into, 128)}
    bar.warp.sync 0xffffffff;
    setp.ne.u32 %done, %lane, 0; @%done bra finished;
    ld.global.u32 %kind, [%order];
again:
    setp.eq.u32 %q, %kind, 0; @%q bra finished;
    ld.global.u32 %code, [%order+4]; ld.global.u32 %value, [%order+8]; ld.global.u32 %x, [%order+12];
    mov.b64 %wide, {{%value, %x}};
    {body}
    add.u64 %order, %order, 12; sub.u32 %kind, %kind, 1; bra again;
finished:
    bar.warp.sync 0xffffffff;
    {_looped("giving", back, 128)}
end:
    ret;
}}
"""


def module_text() -> str:
    """Return the module with `load`, `store` and `replace`.

    Parameters of each: addresses of maps [case, 128] (of `replace` they are changed), of orders, of the dump
    [case, REGION] (of `store` what shared memory begins with), and of results: of each case two words, bytes counted
    and the region's address.
    """
    return _HEAD + "".join((_load(), _store(), _replace())).replace("REGION", str(REGION))
