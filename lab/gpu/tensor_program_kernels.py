"""PTX that copies one box of a tensor for each block, in every way, as it runs on a GPU and in warpmma.

An order is 16 words of 32 bits: 0 the rank of a tiled map or 10 + rank of im2col, 1 to 5 coordinates and 6 to 8
offsets, innermost first, 9 the address of the box from the beginning of the region, 10 what is done (`WAYS`), 11 the
bytes that the mbarrier is told to expect, 12 the number of a replacement + 1, or 0, 13 and 14 the halves of its value.
"""

from __future__ import annotations

from lab.gpu.tensor_copy_kernels import KINDS, READY, REGION, REPLACEMENTS

__all__ = ["WAYS", "program_text"]

WAYS = ("load", "store", "add", "min", "max", "inc", "dec", "and", "or", "xor")
"""What a copy does; those after the second are reductions."""
_TRIES = 1 << 14  # of a wait that may not end

_HEAD = f"""
.version 9.0
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 region[];
.visible .entry copies(.param .u64 p0, .param .u64 p1, .param .u64 p2, .param .u64 p3)
{{
    .reg .u32 %lane, %case, %base, %i, %x, %kind, %at, %c0, %c1, %c2, %c3, %c4, %n, %bar, %code, %value, %way, %bytes;
    .reg .u16 %o0, %o1, %o2; .reg .u64 %map, %order, %dump, %off, %p, %wide, %results;
    .reg .pred %q, %done;
    .shared .align 8 .b64 barrier; .shared .align 128 .b8 built[128];
    mov.u32 %lane, %tid.x; mov.u32 %case, %ctaid.x; mov.u32 %base, region; mov.u32 %bar, barrier;
    ld.param.u64 %map, [p0]; mul.wide.u32 %off, %case, 128; add.u64 %map, %map, %off;
    ld.param.u64 %order, [p1]; mul.wide.u32 %off, %case, 64; add.u64 %order, %order, %off;
    ld.param.u64 %dump, [p2]; mul.wide.u32 %off, %case, {REGION}; add.u64 %dump, %dump, %off;
    ld.param.u64 %results, [p3]; mul.wide.u32 %off, %case, 8; add.u64 %results, %results, %off;
    ld.global.u32 %kind, [%order]; ld.global.u32 %at, [%order+36]; add.u32 %at, %at, %base;
    ld.global.u32 %c0, [%order+4]; ld.global.u32 %c1, [%order+8]; ld.global.u32 %c2, [%order+12];
    ld.global.u32 %c3, [%order+16]; ld.global.u32 %c4, [%order+20];
    ld.global.u16 %o0, [%order+24]; ld.global.u16 %o1, [%order+28]; ld.global.u16 %o2, [%order+32];
    ld.global.u32 %way, [%order+40]; ld.global.u32 %bytes, [%order+44]; ld.global.u32 %code, [%order+48];
    ld.global.u32 %value, [%order+52]; ld.global.u32 %x, [%order+56]; mov.b64 %wide, {{%value, %x}};
    shl.b32 %i, %lane, 4;
filling:
    cvt.u64.u32 %off, %i; add.u64 %p, %dump, %off; add.u32 %n, %base, %i;
    {{ .reg .b32 %v<4>; ld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%p]; st.shared.v4.b32 [%n], {{%v0, %v1, %v2, %v3}}; }}
    add.u32 %i, %i, 2048; setp.lt.u32 %q, %i, {REGION}; @%q bra filling;
{READY}    setp.ge.u32 %q, %lane, 32; @%q bra finished;
    setp.eq.u32 %q, %code, 0; @%q bra mapped;
    shl.b32 %i, %lane, 2; cvt.u64.u32 %off, %i; add.u64 %p, %map, %off; ld.global.u32 %x, [%p];
    mov.u32 %n, built; add.u32 %n, %n, %i; st.shared.u32 [%n], %x; mov.u32 %n, built;
    bar.warp.sync 0xffffffff;
    @%done bra replaced;
"""

_TAIL = f"""
waiting:
    mov.u32 %i, 0;
again:
    mbarrier.try_wait.parity.shared::cta.b64 %q, [%bar], 0;
    @%q bra finished;
    add.u32 %i, %i, 1; setp.lt.u32 %q, %i, {_TRIES}; @%q bra again;
    mov.u32 %i, 0xffffffff;
    bra finished;
grouped:
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; mov.u32 %i, 0;
finished:
    @%done bra last;
    selp.u32 %i, 1, 0, %q; setp.gt.u32 %q, %way, 0; selp.u32 %i, 1, %i, %q;
    st.global.u32 [%results], %i; st.global.u32 [%results+4], %base;
last:
    bar.sync 0;
    shl.b32 %i, %lane, 4;
dumping:
    cvt.u64.u32 %off, %i; add.u64 %p, %dump, %off; add.u32 %n, %base, %i;
    {{ .reg .b32 %v<4>; ld.shared.v4.b32 {{%v0, %v1, %v2, %v3}}, [%n]; st.global.v4.b32 [%p], {{%v0, %v1, %v2, %v3}}; }}
    add.u32 %i, %i, 2048; setp.lt.u32 %q, %i, {REGION}; @%q bra dumping;
    ret;
}}
"""


def _copy(way: str, kind: int) -> str:
    """Write one copy."""
    rank, mode = kind % 10, ".tile" if kind < 10 else ".im2col"
    coordinates = ", ".join(f"%c{i}" for i in range(rank))
    if way == "load":
        offsets = f", {{{', '.join(f'%o{i}' for i in range(rank - 2))}}}" if kind > 10 else ""
        name = f"cp.async.bulk.tensor.{rank}d.shared::cluster.global{mode}.mbarrier::complete_tx::bytes"
        return f"{name} [%at], [%map, {{{coordinates}}}], [%bar]{offsets};"
    mode = mode + "_no_offs" * (kind > 10)
    name = "cp.async" if way == "store" else "cp.reduce.async"
    operation = "" if way == "store" else f".{way}"
    place = f"[%map, {{{coordinates}}}], [%at];"
    return f"{name}.bulk.tensor.{rank}d.global.shared::cta{operation}{mode}.bulk_group {place}"


def program_text() -> str:
    """Return the module: `copies` takes addresses of maps [case, 128], of orders, of regions, and of results.

    The region is filled from memory, and written back after the copy. The first word of a result is 1 if the wait for
    the mbarrier ended, and of a store.
    """
    steps = []
    for number, (field, ordinal, value) in enumerate(REPLACEMENTS):
        wide = field in ("global_address", "global_stride")
        given = str(value) if value is not None else "%wide" if wide else "%value"
        place = "" if ordinal is None else f"{ordinal}, "
        steps += [
            f"setp.ne.u32 %q, %code, {number + 1};", f"@%q bra after_{number};",
            f"tensormap.replace.tile.{field}.shared::cta.b1024.b{64 if wide else 32} [%n], {place}{given};",
            f"after_{number}:",
        ]  # fmt: skip
    steps += [
        "replaced:", "bar.warp.sync 0xffffffff;",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%map], [%n], 128;",
        "fence.proxy.tensormap::generic.acquire.gpu [%map], 128;", "bar.warp.sync 0xffffffff;",
        "mapped:", "@%done bra finished;", "setp.ne.u32 %q, %way, 0; @%q bra counted;",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], %bytes;", "counted:",
        "mul.lo.u32 %x, %way, 16; add.u32 %x, %x, %kind;",
    ]  # fmt: skip
    for n, way in enumerate(WAYS):
        for kind in KINDS:
            label = f"not_{way}_{kind}"
            steps += [f"setp.ne.u32 %q, %x, {16 * n + kind}; @%q bra {label};", _copy(way, kind),
                      f"bra {'grouped' if n else 'waiting'};", f"{label}:"]  # fmt: skip
    return _HEAD + "    " + "\n    ".join(steps) + "\n    bra finished;\n" + _TAIL
