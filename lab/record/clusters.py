"""Record the results of a GPU for clusters that a kernel declares: `python -m lab.record.clusters --help`.

Kernels in CUDA C++ and PTX write each block's cluster registers; they are launched with and without a cluster size.
Needs nvcc and the driver, and a GPU of sm_90 or later.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from lab.gpu.driver import Driver, DriverError, argument_bytes
from lab.gpu.nvcc import cubin

__all__ = ["BLOCKS", "CUDA", "DECLARED", "WORDS", "text"]

BLOCKS, THREADS = 4, 32
CLUSTERS = (None, 1, 2)
"""Sizes that a launch requests; None for no attribute."""
CUDA = r"""
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#define BODY { \
    auto cluster = cg::this_cluster(); \
    if (threadIdx.x == 0) { \
        y[2 * blockIdx.x] = cluster.block_rank(); \
        y[2 * blockIdx.x + 1] = cluster.num_blocks(); \
    } \
}
extern "C" __global__ void undeclared(unsigned *y) BODY
extern "C" __global__ void __cluster_dims__(1, 1, 1) dims_of_1(unsigned *y) BODY
extern "C" __global__ void __cluster_dims__(2, 1, 1) dims_of_2(unsigned *y) BODY
extern "C" __global__ void __cluster_dims__() dims_open(unsigned *y) BODY
extern "C" __global__ void __launch_bounds__(32, 1, 1) bounds_of_1(unsigned *y) BODY
extern "C" __global__ void __launch_bounds__(32, 1, 8) bounds_of_8(unsigned *y) BODY
"""
DECLARED = {
    "nothing": "",
    "size_1": ".reqnctapercluster 1",
    "size_1_1_1": ".reqnctapercluster 1, 1, 1",
    "size_2": ".reqnctapercluster 2",
    "size_0": ".reqnctapercluster 0",
    "explicit": ".explicitcluster",
    "explicit_1": ".explicitcluster .reqnctapercluster 1",
    "explicit_2": ".explicitcluster .reqnctapercluster 2",
    "rank_1": ".maxclusterrank 1",
    "rank_8": ".maxclusterrank 8",
    "explicit_rank_8": ".explicitcluster .maxclusterrank 8",
    "blocks_1": ".reqntid 32 .reqnctapercluster 1 .blocksareclusters",
    "blocks_2": ".reqntid 32 .reqnctapercluster 2 .blocksareclusters",
}
"""Directives of the kernels in PTX."""
WORDS = (
    "%ctaid.x", "%nctaid.x", "%cluster_ctarank", "%cluster_nctarank", "%cluster_ctaid.x", "%cluster_nctaid.x",
    "%clusterid.x", "%nclusterid.x", "%is_explicit_cluster", "getctarank", "mapa.shared::cluster rank 0, from cvta",
    "mapa rank 0, from cvta", "the word in shared memory of rank 0", "mapa.shared::cluster of rank 1 is another",
)  # fmt: skip
"""What each block writes, in this order."""

_HEAD = """.version 9.0
.target sm_90
.address_size 64
"""
_KERNEL = """.visible .entry {name}(.param .u64 {name}_y) {directives} {{
.reg .pred %p, %q; .reg .b32 %r<20>; .reg .b64 %y, %a, %b, %c;
.shared .b32 word;
ld.param.u64 %y, [{name}_y];
mov.u32 %r0, %ctaid.x;
mul.lo.u32 %r1, %r0, {row};
cvt.u64.u32 %a, %r1;
add.u64 %y, %y, %a;
mov.u32 %r1, %tid.x;
setp.eq.u32 %p, %r1, 0;
add.u32 %r2, %r0, 100;
@%p st.shared.u32 [word], %r2;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
st.global.u32 [%y], %r0;
mov.u32 %r3, %nctaid.x;          st.global.u32 [%y+4], %r3;
mov.u32 %r3, %cluster_ctarank;   st.global.u32 [%y+8], %r3;
mov.u32 %r3, %cluster_nctarank;  st.global.u32 [%y+12], %r3;
mov.u32 %r3, %cluster_ctaid.x;   st.global.u32 [%y+16], %r3;
mov.u32 %r3, %cluster_nctaid.x;  st.global.u32 [%y+20], %r3;
mov.u32 %r3, %clusterid.x;       st.global.u32 [%y+24], %r3;
mov.u32 %r3, %nclusterid.x;      st.global.u32 [%y+28], %r3;
mov.pred %q, %is_explicit_cluster;
selp.u32 %r3, 1, 0, %q;          st.global.u32 [%y+32], %r3;
mov.u32 %r4, word;
mov.u64 %b, word;
cvta.shared.u64 %b, %b;
getctarank.u64 %r3, %b;          st.global.u32 [%y+36], %r3;
mapa.shared::cluster.u32 %r5, %r4, 0;
sub.u32 %r3, %r5, %r4;           st.global.u32 [%y+40], %r3;
mapa.u64 %c, %b, 0;
sub.u64 %c, %c, %b;
cvt.u32.u64 %r3, %c;             st.global.u32 [%y+44], %r3;
ld.shared::cluster.u32 %r3, [%r5]; st.global.u32 [%y+48], %r3;
mapa.shared::cluster.u32 %r6, %r4, 1;
setp.ne.u32 %q, %r5, %r6;
selp.u32 %r3, 1, 0, %q;          st.global.u32 [%y+52], %r3;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
ret;
}}
"""


def text() -> str:
    """Return the module of PTX: one kernel for each of `DECLARED`, whose blocks write `WORDS`."""
    return _HEAD + "\n".join(
        _KERNEL.format(name=name, directives=directives, row=4 * len(WORDS)) for name, directives in DECLARED.items()
    )


def measured(source: str, architecture: str) -> dict[str, object]:
    """Launch every kernel of a source, "cuda" or "ptx", with every size; the words of each launch, or the error."""
    if source == "cuda":
        module: str | bytes = cubin(CUDA, architecture)
        names = [line.split("(unsigned")[0].split()[-1] for line in CUDA.splitlines() if line.startswith("extern")]
        words = 2
    else:
        module, names, words = text(), list(DECLARED), len(WORDS)
    driver = Driver()
    like = np.full((BLOCKS * 2, words), 0xFFFFFFFF, np.uint32)  # if the grid counts clusters, there are more blocks
    place = {"y": driver.place(like)}
    found: dict[str, object] = {}
    for name, function in driver.load(module, names).items():
        for cluster in CLUSTERS:
            driver.put(place["y"], like)
            key = f"{name} launched with {'no size' if cluster is None else cluster}"
            try:
                driver.launch(function, [BLOCKS], [THREADS], [argument_bytes(place, "y")], cluster=cluster)
                driver.synchronise(20)
                found[key] = [row for row in driver.fetch(place["y"], like).tolist() if row[0] != 0xFFFFFFFF]
            except DriverError as error:
                found[key] = str(error)
    return found


def main(arguments: list[str] | None = None) -> int:
    """Launch every kernel with every size of a cluster; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arch", default="sm_90", help="of the GPU (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="words by kernel and size, JSON")
    options = parser.parse_args(arguments)
    about = {**Driver.about(), "source": "python -m lab.record.clusters", "blocks": BLOCKS, "words": list(WORDS)}
    found = {source: measured(source, options.arch) for source in ("cuda", "ptx")}
    if options.out:
        options.out.write_text(json.dumps({**about, **found}, indent=0))
    for source, launches in found.items():
        for key, value in launches.items():
            print(f"{source}: {key}: {value}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
