"""Draw the gallery: `python -m lab.draw.gallery` writes the pictures of docs/pictures.md into docs/pictures.

`--check` writes nothing, and lists outdated files.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from warpmma import isa, layouts, lookup, scaling, sparsity

__all__ = ["FOLDER", "PICTURES", "outdated"]

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"

_F16 = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
_VOLTA = "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32"
_TF32 = "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32"
_FP64 = "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64"
_FP8 = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
_PADDED = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e2m1.f32"
_FP4 = "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0"
_BITS = "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.xor.popc"
_SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
_TRANSPOSED = "ldmatrix.sync.aligned.m8n8.x4.trans.b16"
_WARPGROUP = "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"
_WARPGROUP_32 = "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16"


def _fragment(mnemonic: str, operand: str, by: str = "element") -> str:
    return isa.parse_any(mnemonic).svg(operand, by)


def _moved(mnemonic: str, operand: str) -> str:
    return isa.parse_fragments(mnemonic).svg(operand)


def _metadata_words() -> str:
    """Metadata of a matrix that was pruned, and one nibble that is undefined."""
    a = np.random.default_rng(3).standard_normal((16, 32)).astype(np.float16)
    _, indices = sparsity.compress(sparsity.prune(a, _SPARSE), _SPARSE)
    words = sparsity.pack_metadata(indices, _SPARSE, selector=1)
    words[14] &= 0xFFFF_FF0F
    return lookup.read_words(_SPARSE, "metadata", words, selector=1).svg()


def _scale_words() -> str:
    a = np.random.default_rng(4).standard_normal((16, 64)) * 2.0 ** np.arange(-4, 12)[:, None]
    scales = scaling.quantize(a.astype(np.float32), _FP4, "A").scales
    words = scaling.pack_scales(scales, _FP4, "A", byte_id=2, thread_id=1)
    return lookup.read_words(_FP4, "scale_a", words, byte_id=2, thread_id=1).svg()


def _shared() -> str:
    """Draw B in shared memory, as a descriptor with a swizzle reads it."""
    return lookup.shared_reading(_WARPGROUP_32, "B", 0x4000_0040_0000_0040).svg()


def _load() -> str:
    """Draw a load that is partly outside of the tensor, with a swizzle."""
    made = layouts.TensorMap(
        0x7F0000000400, (8, 64), type="f16", shape=(100, 120), strides=(256,), swizzle=128, fill="nan"
    )
    return made.svg((-3, 80), 0x400)


PICTURES: Mapping[str, Callable[[], str]] = {
    "m16n8k16_a": partial(_fragment, _F16, "A"), "m16n8k16_b": partial(_fragment, _F16, "B"),
    "m16n8k16_d": partial(_fragment, _F16, "D"), "m16n8k16_a_by_lane": partial(_fragment, _F16, "A", "lane"),
    "m8n8k4_f16_a": partial(_fragment, _VOLTA, "A"), "m8n8k4_f32_d": partial(_fragment, _VOLTA, "D"),
    "m8n8k4_f64_b": partial(_fragment, _FP64, "B"), "m16n8k8_tf32_a": partial(_fragment, _TF32, "A"),
    "m16n8k32_e4m3_a": partial(_fragment, _FP8, "A"), "m16n8k32_e2m1_b": partial(_fragment, _PADDED, "B"),
    "m16n8k64_e2m1_b": partial(_fragment, _FP4, "B"), "m16n8k256_b1_a": partial(_fragment, _BITS, "A"),
    "metadata_places": partial(_fragment, _SPARSE, "metadata"), "metadata_words": _metadata_words,
    "scales_a_places": partial(_fragment, _FP4, "scale_a"), "scales_b_places": partial(_fragment, _FP4, "scale_b"),
    "scales_a_words": _scale_words, "wgmma_d": partial(_fragment, _WARPGROUP, "D"),
    "wgmma_a": partial(_fragment, _WARPGROUP, "A"),
    "ldmatrix_x4_trans_d": partial(_moved, _TRANSPOSED, "D"),
    "ldmatrix_x4_address": partial(_moved, _TRANSPOSED, "address"), "tensor_map_load": _load,
    "wgmma_b_shared": _shared,
}  # fmt: skip
"""Drawings by the name of the file."""


def outdated() -> list[str]:
    """Return the names of outdated files."""
    files = {name: FOLDER / f"{name}.svg" for name in PICTURES}
    return [name for name, file in files.items() if not file.exists() or file.read_text() != PICTURES[name]()]


def main() -> int:
    """Write the pictures, or check them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    if parser.parse_args().check:
        bad = outdated()
        print("\n".join(bad) or f"{len(PICTURES)} pictures are what is drawn now")
        return bool(bad)
    FOLDER.mkdir(exist_ok=True)
    for name, drawn in PICTURES.items():
        (FOLDER / f"{name}.svg").write_text(drawn())
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
