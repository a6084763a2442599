"""Why mutants of public kernels that nobody notices are harmless: arguments, as in `harmless_texts.py`."""

from __future__ import annotations

from .harmless import Arguments, by_name

__all__ = ["HARMLESS"]

_ARGUMENTS: Arguments = (
    (
        "A barrier of the block publishes the new mbarriers to the threads that use them (A9).",
        (
            ("pingpong_*", "fence dropped: line *: fence.mbarrier_init.release.cluster"),
            ("flash_f16", "fence dropped: line *: fence.mbarrier_init.release.cluster"),
            ("flash_f16", "order: line 508: fence.mbarrier_init* after bar.sync 0"),
            ("grouped_f16", "fence dropped: line *: fence.mbarrier_init.release.cluster"),
            ("streamk_f16", "fence dropped: line *: fence.mbarrier_init.release.cluster"),
            ("blockwise_e4m3", "fence dropped: line *: fence.mbarrier_init.release.cluster"),
            ("mixed_s8_f16", "fence dropped: line *: fence.mbarrier_init.release.cluster"),
            ("deepgemm_*", "fence dropped: line *: fence.mbarrier_init.release.cluster"),
        ),
    ),
    (
        "A later fence of the same thread, before it arrives at the barrier of the cluster, releases these mbarriers,"
        " too (A17).",
        tuple(
            (kernel, f"fence dropped: line {line}: fence.mbarrier_init.release.cluster")
            for kernel, lines in {
                "cooperative_bf16_cluster_2x1": (236, 395),
                "cooperative_f16_cluster_2x2": (199, 357),
                "grouped_pingpong_e4m3_cluster_2x1": (301, 442, 596, 634),
            }.items()
            for line in lines
        ),
    ),
    (
        "Nothing but its initialization names the mbarrier: FlashAttention-3 appends no keys here and loads V as it is,"
        " the other kernel has no C to load.",
        tuple(
            (kernel, f"{change}: line {line}: *mbarrier.init*")
            for kernel, lines in {
                "flash_f16": (321, 327, 333, 339, 400, 407, 413, 419, 481, 488, 494, 500),
                "cooperative_f16_cluster_2x2": (307, 314, 320, 326, 332, 338, 344, 350),
            }.items()
            for line in lines
            for change in ("init dropped", "count")
        ),
    ),
    ("No statement reads the register that the elected lane sets.", (("flash_f16", "guard dropped: line 440: *"),)),
    (
        "Registers of PTX are virtual. Without the instruction ptxas makes do with those that a thread begins with, and"
        " spills values to local memory: the kernel is slower, and computes the same.",
        (("*", "registers dropped: line *: setmaxnreg.inc*"),),
    ),
    (
        "The mbarrier gives the two warpgroups their turns, each of which needs an arrival less than the one before, at"
        " first 127 of 128. Lanes arrive at once, so a warp of the turn has, and nothing that the others did is needed"
        " (A9). The 127th turn completes two phases, which is a deadlock.",
        (("pingpong_*", "count: line 419: -1 in mbarrier.init*"),),
    ),
    (
        "The mbarrier by which the warpgroups take turns orders the stores of the next tile behind the wait (A7, A9).",
        (
            ("pingpong_f16", "barrier dropped: line 2866: bar.sync*"),
            ("pingpong_e4m3_fast", "barrier dropped: line 2372: bar.sync*"),
        ),
    ),
    (
        "The mbarrier only says which of two warps issues its copies first; each copy has its own mbarrier (A7).",
        (("pingpong_f16", "parity: line 3456: *"),),
    ),
    (
        "What others read is published by the completion of the copy, and by nothing that the thread did before it"
        " arrives (A6, A7).",
        (
            ("pingpong_f16", "weaker: line 3892: relaxed in mbarrier.arrive*"),
            ("pingpong_e4m3_fast", "weaker: line 3396: relaxed in mbarrier.arrive*"),
            ("blockwise_e4m3", "weaker: line 4347: relaxed in mbarrier.arrive*"),
            ("deepgemm_bf16", "weaker: line 461: relaxed in mbarrier.arrive.expect_tx*"),
            ("flash_f16", "weaker: line 5211: relaxed in mbarrier.arrive.expect_tx*"),
        ),
    ),
    (
        "The phase before the first is complete: the wait that was left out for it ends at once (A9).",
        (
            ("pingpong_f16", "wait dropped: line 3598: *"),
            ("pingpong_e4m3_fast", "wait dropped: line 3102: mbarrier*"),
            ("deepgemm_e4m3_groups", "wait dropped: line 483: mbarrier*"),
        ),
    ),
    (
        "No register of D is accessed between the fence before and the products, which have A in shared memory (A28).",
        (
            ("flash_f16", "fence dropped: line 2925: wgmma.fence*"),
            ("cooperative_bf16_cluster_2x1", "fence dropped: line 1835: wgmma.fence*"),
            ("cooperative_f16_cluster_2x2", "fence dropped: line 1767: wgmma.fence*"),
            ("streamk_f16", "fence dropped: line 3049: wgmma.fence*"),
            ("deepgemm_bf16", "fence dropped: line 1241: wgmma.fence*"),
            ("deepgemm_bf16", "fence dropped: line 3010: wgmma.fence*"),
            ("deepgemm_bf16", "order: line 2296: wgmma.fence* after wgmma.mma_async*"),
            ("kittens_ring_bf16", "fence dropped: line 2580: wgmma.fence*"),
            ("kittens_ring_bf16", "fence dropped: line 2954: wgmma.fence*"),
        ),
    ),
    (
        "All copies of the thread are in groups that it waits for: the one that is left out would be empty (A7, A21).",
        (
            ("grouped_f16", "commit dropped: line 3427: *"),
            ("grouped_pingpong_e4m3_cluster_2x1", "commit dropped: line 3602: *"),
        ),
    ),
    (
        "The thread has made no copy yet, by this map or another: it has nothing to wait for (A21).",
        (("grouped_f16", "wait dropped: line 4100: *"),),
    ),
    (
        "Four buffers are used in turns, and another barrier precedes the next turn of each; what frees one for a"
        " load of C counts the thread that waits for the store, too (A7, A9).",
        (
            ("cooperative_bf16_cluster_2x1", "barrier dropped: line 2694: bar.sync*"),
            ("grouped_f16", "barrier dropped: line 2805: bar.sync*"),
            ("streamk_f16", "barrier dropped: line 4924: bar.sync*"),
        ),
    ),
    (
        "The wait is for a slot of V, which products free that need earlier copies of K alone: the copy may come behind"
        " it (A9).",
        (
            ("flash_f16", "order: line 4960: cp.async.bulk.tensor.4d*"),
            ("flash_f16", "order: line 5080: cp.async.bulk.tensor.4d*"),
        ),
    ),
    (
        "The wait before it, for the end of the tile before, says that all slots of V are free: this is the first of"
        " the tile (A9).",
        (("flash_f16", "wait dropped: line 4969: looks once*"),),
    ),
    (
        "No access follows the wait, and all arrivals that it waits for come from threads of its own block (A18).",
        (
            ("cooperative_bf16_cluster_2x1", "wait dropped: line 3314: looks once*"),
            ("flash_f16", "wait dropped: line 5349: *"),
            ("flash_f16", "weaker: line 5349: *"),
            ("flash_f16", "stage: line 5349: *"),
            ("grouped_f16", "weaker: line 3850: *"),
            ("blockwise_e4m3", "wait dropped: line 4468: *"),
            ("grouped_pingpong_e4m3_cluster_2x1", "wait dropped: line 4067: *"),
            ("grouped_pingpong_e4m3_cluster_2x1", "weaker: line 4682: *"),
            ("streamk_f16", "wait dropped: line 2056: *"),
            ("streamk_f16", "weaker: line 6408: *"),
        ),
    ),
    (
        "Each thread fences behind the barrier, and so does the one that copies (A3).",
        (("blockwise_e4m3", "order: line 3377: fence.proxy.async*"),),
    ),
    (
        "The branch is not taken: every unit of work has a step of k, none is the separate sum of a tile's parts, and"
        " every row is in a group.",
        (
            ("streamk_f16", "branch dropped: line 3396: *"),
            ("streamk_f16", "branch dropped: line 5606: *"),
            ("deepgemm_e4m3_groups", "branch dropped: line 963: *"),
        ),
    ),
    (
        "Bytes may come before they are expected: neither orders anything, and the phase ends when both are counted and"
        " the thread has arrived (A10).",
        (("*", "order: line *: cp.async.bulk.tensor* after mbarrier.expect_tx*"),),
    ),
    (
        "Behind the last step of k a later wait precedes the arrival that frees the stage, and no register of an A is"
        " written in between (A7, A26).",
        (("mixed_s8_f16", "wait dropped: line 2928: wgmma.wait_group*"),),
    ),
    (
        "Copies in bulk alone write the tiles, and a wait at their mbarrier precedes the products: the proxy fence has"
        " nothing to let cross (A7).",
        (
            ("kittens_ring_bf16", "proxy fence dropped: line 2584: *"),
            ("kittens_ring_bf16", "weaker: line 2231: .global in fence.proxy.async*"),
        ),
    ),
    (
        "The fence before the first of the copies lets all of their tiles cross, and nothing is stored since (A3).",
        (
            ("kittens_ring_bf16", "proxy fence dropped: line 3448: *"),
            ("kittens_ring_bf16", "proxy fence dropped: line 3462: *"),
        ),
    ),
    (
        "The next group takes the copy in, and is waited for before a tile is stored or loaded again (A7).",
        (
            ("kittens_ring_bf16", "commit dropped: line 3428: *"),
            ("kittens_ring_bf16", "order: line 3425: cp.async.bulk.tensor* after cp.async.bulk.commit_group"),
        ),
    ),
    (
        "The next tile's loads, and so its products and stores, come after the arrival of every warp that has stored"
        " this one (A9).",
        (("kittens_ring_bf16", "barrier dropped: line 1581: bar.sync*"),),
    ),
    (
        "The warp reads the announced tile before it loads C of the tile before, and the warpgroups arrive at the slot"
        " behind their wait for that C: their arrivals say that the slot is free (A9).",
        (("grouped_pingpong_e4m3_cluster_2x1", "rank: line 4327: ^ 1 in mapa*"),),
    ),
    (
        "More lanes wait where one did, no access follows, and all arrivals come from threads of the block (A18).",
        (("grouped_pingpong_e4m3_cluster_2x1", "branch dropped: line 5257: *"),),
    ),
    (
        "The wait is for a slot that is freed without the arrival, which may come behind it (A9).",
        (("grouped_pingpong_e4m3_cluster_2x1", "order: line 4445: mbarrier.arrive* after mbarrier.try_wait*"),),
    ),
    (
        "The wait is still before the products; the fence is about registers alone (A28).",
        (("deepgemm_bf16", "order: line *: mbarrier.try_wait* after wgmma.fence*"),),
    ),
    (
        "The barrier behind the wait for the store precedes the next accesses to the tile (A7).",
        (("deepgemm_bf16", "barrier dropped: line 3514: bar.warp.sync*"),),
    ),
    (
        "The same threads meet at a barrier of another number, which no others use.",
        (("deepgemm_e4m3_groups", "count: line 5401: number +1 in bar.sync*"),),
    ),
    (
        "The lanes have accessed no memory before the barrier of their warp.",
        (("deepgemm_*", "barrier dropped: line 90: bar.warp.sync*"),),
    ),
    (
        "A prefetch is a hint: no value depends on it.",
        (
            ("flash_f16", "coordinate: line 4735: *"),
            ("deepgemm_bf16", "guard dropped: line 68: *"),
            ("deepgemm_e4m3_groups", "guard dropped: line 80: *"),
        ),
    ),
    (
        "The map has two dimensions: what is not written there is of a third or later one.",
        (
            ("grouped_f16", "change of a map dropped: line 4420: tensormap.replace.tile.global_dim*"),
            ("grouped_pingpong_e4m3_cluster_2x1", "change of a map dropped: line 4585: *.global_dim*, 4, *"),
        ),
    ),
    (
        "elect.sync elects the same lane again: what it wrote before the barrier, no other lane changes.",
        (("grouped_f16", "barrier dropped: line 4610: bar.warp.sync*"),),
    ),
    (
        "The warp that changes the map is the one that copies: the scope of the block has both (A19, A20).",
        (("grouped_f16", "weaker: line 4783: scope .cta*"),),
    ),
)

HARMLESS = by_name(_ARGUMENTS)
"""The argument, by the names of a kernel and a mutation."""
