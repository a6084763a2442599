"""Why mutants of PTX that nobody notices are harmless: arguments, as in `harmless.py`.

An argument of what orders accesses names a rule of `docs/asynchronous_order.md`; the others say which values or which
threads the change does not alter.
"""

from __future__ import annotations

from .harmless import Arguments, by_name

__all__ = ["HARMLESS"]

_ARGUMENTS: Arguments = (
    (
        "What others read is published by the completion of the copy, and by nothing that the thread did before it"
        " expected the bytes (A6, A7).",
        (("*", "weaker: line *: relaxed in mbarrier.arrive.expect_tx*"),),
    ),
    (
        "Bytes may come before they are expected: neither orders anything, and the phase ends when both are counted"
        " (A10).",
        (
            ("*", "order: line *: mbarrier.arrive.expect_tx* after cp.async.bulk*"),
            ("copy_pipeline", "order: line *: cp.async.bulk.tensor* after mbarrier.arrive.expect_tx*"),
            ("cluster_pipeline", "order: line *: cp.async.bulk.tensor* after mbarrier.arrive.expect_tx*"),
        ),
    ),
    (
        "A barrier of the block or of the warp publishes the new mbarriers to the threads that use them; what copies"
        " signal there is counted, and needs no order (A18).",
        (
            ("ring", "*proxy fence dropped: line 27: *"), ("ring", "weaker: line 27: *"),
            ("ring", "order: line 26: *"), ("ring", "order: line 27: *"),
            ("copy_pipeline", "fence dropped: line *: fence.mbarrier_init*"),
            ("one_releases", "fence dropped: line *: fence.mbarrier_init*"),
            ("tensor_tiles", "fence dropped: line *: fence.mbarrier_init*"),
            ("changed_maps", "fence dropped: line *: fence.mbarrier_init*"),
            ("product", "fence dropped: line *: fence.mbarrier_init*"),
            ("copy_pipeline", "order: line *: mbarrier.init* after fence.mbarrier_init*"),
            ("one_releases", "order: line *: mbarrier.init* after fence.mbarrier_init*"),
            ("tensor_tiles", "order: line *: mbarrier.init* after fence.mbarrier_init*"),
            ("changed_maps", "order: line *: mbarrier.init* after fence.mbarrier_init*"),
            ("product", "order: line *: mbarrier.init* after fence.mbarrier_init*"),
        ),
    ),
    (
        "The barrier of the cluster releases and acquires by itself; or it is relaxed, and the fence before it releases"
        " the new mbarriers (A17).",
        (
            ("cluster_pipeline", "fence dropped: line *: fence.mbarrier_init*"),
            ("cluster_pipeline", "order: line *: mbarrier.init* after fence.mbarrier_init*"),
            ("cluster_pipeline", "weaker: line 105: relaxed in barrier.cluster.arrive"),
        ),
    ),
    (
        "An arrival in another block says that what its thread has read is over, whatever its scope; it publishes no"
        " data here (A9).",
        (
            ("cluster_pipeline", "weaker: line *: scope .cta in mbarrier.arrive.release.cluster*"),
            ("counted_stores", "weaker: line 591: scope .cta*"), ("counted_stores", "weaker: line 637: scope .cta*"),
        ),
    ),
    (
        "The words of the last round come after the arrivals of the round before it: one look is enough (A9).",
        (("counted_stores", "wait dropped: line 591: looks once*"),),
    ),
    (
        "Rank 1 loads the half that is read late, and waits for the arrival that still follows (A9).",
        (("cluster_pipeline", "order: line 271: *"),),
    ),
    (
        "Lanes 0 and 1 arrive at the mbarriers of both blocks, whichever takes which (A9).",
        (("remote_release", "rank: line *: ^ 1 in mapa*"),),
    ),
    (
        "Lanes of a warp arrive at once, and all have read before; in so few turns the arrivals that are one too many"
        " do not add up to those of a warp (A9). A longer ring is reported.",
        (("copy_pipeline", "count: line *: -1 in mbarrier.init*, %r19"),),
    ),
    (
        "Each thread fences behind the barrier, and so does the one that copies (A3).",
        (
            ("epilogue", "order: line 114: fence.proxy.async* after bar.sync*"),
            ("pingpong", "order: line 1233: fence.proxy.async* after bar.sync*"),
            ("reduction", "order: line *: fence.proxy.async* after bar.sync*"),
            ("tensor_tiles", "order: line 204: fence.proxy.async* after bar.sync*"),
            ("product", "order: line 1173: fence.proxy.async* after bar.sync*"),
        ),
    ),
    (
        "The readers have fenced since they read, and their barrier passes that on (A3, A12).",
        (
            ("tensor_tiles", "proxy fence dropped: line 133: *"), ("tensor_tiles", "weaker: line 133: *"),
            ("tensor_tiles", "order: line 133: fence.proxy.async* after mbarrier.arrive.expect_tx*"),
        ),
    ),
    (
        "The barrier is still between the wait for the groups and the stores to their buffer (A7).",
        (("tensor_tiles", "order: line 174: bar.sync 0 after mbarrier.try_wait*"),),
    ),
    (
        "Rows of a box that are outside of the tensor are neither stored nor added.",
        (("tensor_tiles", "box: 16x16 in the map sums"), ("product", "box: 128x8 in the map d")),
    ),
    (
        "The fence is still before the product, and no register of D is accessed in between (A28).",
        (("product", "order: line 1019: * after wgmma.fence*"),),
    ),
    (
        "The fence is still before the copy, which the thread issues later (A3, A5).",
        (("changed_maps", "order: line 783: fence.proxy.async* after mbarrier.arrive.expect_tx*"),),
    ),
    (
        "A thread waits for its own groups alone: the others have none (A7).",
        (
            ("epilogue", "branch dropped: line 63: *"), ("epilogue", "branch dropped: line 150: *"),
            ("tensor_tiles", "branch dropped: line 166: *"), ("tensor_tiles", "branch dropped: line 240: *"),
        ),
    ),
    (
        "The wait before the block ends is for the reading of shared memory; what is still written completes without"
        " a wait (A16).",
        (
            ("reader_fences", "weaker: line 282: .read*"), ("column_sums", "weaker: line 519: .read*"),
            ("tensor_tiles", "weaker: line *: .read in cp.async.bulk.wait_group 0"),
            ("product", "weaker: line *: .read in cp.async.bulk.wait_group 0"),
        ),
    ),
    (
        "The warp that changes the map is the one that copies: the scope of the block has both (A19, A20).",
        (
            ("changed_maps", "weaker: line *: scope .cta in tensormap.cp_fenceproxy*"),
            ("changed_maps", "weaker: line *: scope .cta in fence.proxy.tensormap*"),
        ),
    ),
    (
        "The phase before the first is complete: the wait that was left out for it ends at once (A9).",
        (("copy_pipeline", "branch dropped: line 154: *"), ("cluster_pipeline", "branch dropped: line 188: *")),
    ),
    (
        "Several threads copy the same bytes to the same place, from memory that no thread writes any more (A5).",
        (
            ("reader_fences", "branch dropped: line 249: *"), ("reader_fences", "branch dropped: line 264: *"),
            ("column_sums", "branch dropped: line 501: *"), ("product", "branch dropped: line 1181: *"),
        ),
    ),
    (
        "Another barrier orders the same accesses before they are used again.",
        (
            ("tensor_tiles", "barrier dropped: line 83: bar.sync 0"),
            ("pingpong", "order: line 1173: ld.shared* after bar.sync*"),
            ("pingpong", "order: line 1280: ld.shared* after bar.sync*"),
            ("pingpong", "order: line 1223: st.shared* after bar.arrive*"),
            ("pingpong", "order: line 1228: bar.arrive* after fence.proxy.async*"),
        ),
    ),
    (
        "The same threads meet at a barrier of another number, which no others use.",
        (
            ("epilogue", "count: line *: number +1 in bar.sync*"),
            ("pingpong", "count: line 1239: number +1 in bar.sync*"),
            ("product", "count: line 1177: number +1 in bar.sync*"),
        ),
    ),
    (
        "The extra arrival comes at the end, and no thread waits for it.",
        (("pingpong", "branch dropped: line 1292: *"),),
    ),
    (
        "No thread reads what is stored there before the kernel ends.",
        (
            ("cluster_pipeline", "order: line 319: st.global* after barrier.cluster.arrive"),
            ("plain_barriers", "order: line 411: st.global* after bar.sync 0"),
            ("counted_stores", "order: line 629: st.global* after mbarrier.arrive*"),
            ("counted_copies", "order: line *: mbarrier.arrive* after st.global*"),
            ("one_releases", "order: line 681: st.global* after bar.warp.sync*"),
            ("remote_release", "order: line 943: st.global* after bar.warp.sync*"),
        ),
    ),
    (
        "The memory of the mbarrier is not used for anything else.",
        (("plain_barriers", "inval dropped: line 427: *"),),
    ),
    (
        "The threads of a block of 256 begin with the 232 registers that setmaxnreg.inc asks for: it waits for none.",
        (
            ("one_releases", "registers dropped: line 611: setmaxnreg.inc*"),
            ("product", "registers dropped: line *: setmaxnreg*"),
        ),
    ),
    (
        "The branch is not taken: every block has a tile, and every tile a row.",
        (
            ("epilogue", "branch dropped: line 51: *"), ("reader_fences", "branch dropped: line 183: *"),
            ("plain_barriers", "branch dropped: line 338: *"), ("one_releases", "branch dropped: line 530: *"),
            ("one_releases", "branch dropped: line 616: *"), ("remote_release", "branch dropped: line 886: *"),
            ("reduction", "branch dropped: line 1333: *"), ("pingpong", "branch dropped: line 1184: *"),
            ("tensor_tiles", "branch dropped: line 112: *"), ("changed_maps", "branch dropped: line 726: *"),
            ("counted_stores", "branch dropped: line 530: *"), ("counted_copies", "branch dropped: line 328: *"),
            ("counted_copies", "branch dropped: line 394: *"), ("column_sums", "branch dropped: line 117: *"),
            ("column_sums", "branch dropped: line 159: *"), ("column_sums", "branch dropped: line 224: *"),
            ("column_sums", "branch dropped: line 248: *"), ("column_sums", "branch dropped: line 262: *"),
            ("column_sums", "branch dropped: line 317: *"), ("column_sums", "branch dropped: line 378: *"),
            ("column_sums", "branch dropped: line 428: *"), ("column_sums", "branch dropped: line 453: *"),
            ("column_sums", "branch dropped: line 471: *"), ("product", "branch dropped: line 997: *"),
        ),
    ),
)  # fmt: skip

HARMLESS = by_name(_ARGUMENTS)
"""The argument, by the names of a kernel and a mutation."""
