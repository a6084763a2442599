"""Every kind of matrix instruction from PTX text: dense, sparse and scaled `mma`, and moves of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from arrays import Array, same

import warpmma as wm
from warpmma.operations import matrix_move, operation

DENSE = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e4m3.e5m2.f32.ue8m0"


def ran(body: str, given: Array, outputs: int, target: str) -> Array:
    """Registers that a text leaves in %d, of those that it is given in %x, `[register, lane]`."""
    loads = "".join(f"ld.global.u32 %x{i}, [%p+{128 * i}];\n" for i in range(len(given)))
    stores = "".join(f"st.global.u32 [%q+{128 * i}], %d{i};\n" for i in range(outputs))
    text = f""".version 8.7
.target {target}
.address_size 64
.visible .entry k(.param .u64 a, .param .u64 b)
{{
.reg .b32 %x<{len(given)}>; .reg .b32 %d<{max(outputs, 1)}>; .reg .b32 %t, %s; .reg .b64 %p, %q;
.shared .align 16 .b8 tile[512];
ld.param.u64 %p, [a]; ld.param.u64 %q, [b];
mov.u32 %t, %laneid;
mad.wide.u32 %p, %t, 4, %p; mad.wide.u32 %q, %t, 4, %q;
{loads}
{body}
{stores}
ret;
}}"""
    out = np.zeros((outputs, 32), np.uint32)
    wm.ptx.load(text)["k"].launch(wm.Device(target), 1, 32, [given, out])
    return out


def listed(letter: str, first: int, count: int) -> str:
    return "{" + ", ".join(f"%{letter}{first + i}" for i in range(count)) + "}"


@pytest.mark.parametrize(
    ("mnemonic", "target", "after", "extra"),
    [
        (DENSE, "sm_90", "", {}),
        (SPARSE, "sm_90", ", %x{e}, 0x1", {"metadata": True, "selector": 1}),
        (SCALED, "sm_120a", ", {{%x{e}}}, {{1, 0}}, {{%x{f}}}, {{2, 0}}", {"byte_id_a": 1, "byte_id_b": 2}),
    ],
)
def test_products(mnemonic: str, target: str, after: str, extra: dict[str, Any]) -> None:
    i = wm.parse(mnemonic)
    counts = {name: i.layout(name).registers for name in ("A", "B", "C")}
    rng = np.random.default_rng(5)
    given = rng.integers(0, 1 << 32, (sum(counts.values()) + 2, 32), np.uint32)
    a, b = counts["A"], counts["A"] + counts["B"]
    end = b + counts["C"]
    given[end:] = 0x44444444 if i.sparse else given[end:] | 0x10101010
    places = (listed("d", 0, counts["C"]), listed("x", 0, a), listed("x", a, counts["B"]), listed("x", b, counts["C"]))
    body = f"{mnemonic} {', '.join(places)}{after.format(e=end, f=end + 1)};"
    found = ran(body, given, counts["C"], target)
    words: dict[str, Any] = dict(extra)
    if i.sparse:
        words["metadata"] = given[end]
    if i.block_scale:
        words |= {"scale_a": given[end], "scale_b": given[end + 1]}
    same(found, wm.execute(i, given[:a], given[a:b], given[b:end], target=target, **words))


def test_matrices_in_shared_memory() -> None:
    """Registers go to shared memory, come back transposed, and are transposed once more."""
    store, load = "stmatrix.sync.aligned.m8n8.x4.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"
    turn = "movmatrix.sync.aligned.m8n8.trans.b16"
    given = np.random.default_rng(6).integers(0, 1 << 32, (4, 32), np.uint32)
    turned = "".join(f"{turn} %d{i}, %d{i};\n" for i in range(4))
    body = f"""mov.u32 %s, tile; mad.lo.u32 %s, %t, 16, %s;
{store} [%s], {listed("x", 0, 4)};
bar.warp.sync -1;
{load} {listed("d", 0, 4)}, [%s];
{turned}"""
    found = ran(body, given, 4, "sm_90")
    rows = matrix_move(load).distribute(matrix_move(store).collect(given))
    same(found, np.stack([operation(turn)(x)[0] for x in rows]))
    same(found, given)
