"""The rules of asynchronous order: what orders copies, mbarriers and proxies, and how we know.

One table with many readers: reports name a rule, docs/asynchronous_order.md lists all, and the code that applies one
says its name. "default": every policy but "off" reports what breaks it, because PTX's text or an H200 shows that it is
wrong; "strict": only the policy "strict" does, because PTX forbids it and no H200 was seen to fail.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal


@dataclass(frozen=True)
class Rule:
    """One rule: what it says, at which level it is reported, and its source."""

    says: str
    level: Literal["default", "strict"]
    source: str


_PTX = "PTX ISA 9.1"

RULES: Mapping[str, Rule] = MappingProxyType({
    "A1": Rule(
        "An access belongs to an agent: a thread, or what completes an asynchronous operation, which is an mbarrier or "
        "the bulk groups of one thread. cp.async and st.async are of the generic proxy, copies in bulk of the async "
        "proxy.", "default", f"{_PTX}, 9.7.9.25.2",
    ),
    "A2": Rule(
        "A thread knows what happens before its next access, and which part of that has crossed to the async proxy, "
        "for shared and for global memory. All that precedes a launch has crossed.", "default", f"{_PTX}, 8.9.4",
    ),
    "A3": Rule(
        "fence.proxy.async lets all that its thread knows cross; .shared::cta, .shared::cluster and .global do so for "
        "one space. What synchronizes threads passes on what has crossed: any thread on the way from the write to the "
        "copy may fence.", "default", "measured: fences by writer, issuer or an ordered third thread, 0 of 3.4G old "
        "each; without, or by an unordered thread, 99.99 to 100 % after a barrier",
    ),
    "A4": Rule(
        "A fence for the wrong space lets nothing cross.", "default",
        "measured: 7 to 100 % of 3.4G old, behind a barrier too",
    ),
    "A5": Rule(
        "An operation starts after what its thread did before. What it reads or writes and a thread has written has "
        "to happen before that, and to have crossed.", "default", f"{_PTX}, 8.9.1.1; measured as A3",
    ),
    "A6": Rule(
        "The completion of an operation publishes the operation's own accesses, and nothing else that its thread did.",
        "default", f"{_PTX}, 8.9.1.1",
    ),
    "A7": Rule(
        "A thread that observes the completion, by a wait at the mbarrier or for the groups, is ordered behind the "
        "operation, in both proxies. wait_group.read ends the reading alone, for its thread and those that are ordered "
        "behind it.", "default", f"{_PTX}, 9.7.9.25.2",
    ),
    "A8": Rule(
        "Between issue and completion, the destination may not be accessed and the source may not be written.",
        "default", f"{_PTX}, 9.7.9.25.1",
    ),
    "A9": Rule(
        "An arrival at an mbarrier releases, a wait that finds the phase complete acquires, unless they are .relaxed. "
        "Both scopes have to include both threads. An arrival in another block says, whatever the scopes, that what "
        "its thread has read and the operations that it has seen complete are over.", "default", "measured: a .cta "
        "arrival carries no stores, 95 to 100 % of 1.3G old in shared memory of either block; as the signal that a "
        "buffer is free, 0 of 1.35G reads wrong",
    ),
    "A10": Rule("expect_tx and complete_tx order nothing.", "default", f"{_PTX}, 9.7.13.15"),
    "A11": Rule(
        "mbarrier.init over an mbarrier that is in use, an arrival that counts zero, and mbarrier.inval where there is "
        "no mbarrier, are undefined in PTX; so are init and inval by several lanes at once. An H200 begins again, and "
        "does nothing.", "strict",
        f"{_PTX}, 9.7.13.15; init and arrivals measured",
    ),
    "A12": Rule(
        "What a thread has read may be overwritten by the async proxy only after a fence.proxy.async.", "strict",
        f"{_PTX}, 8.9; measured: 0 wrong where values were used before the signal, 25 to 67 % where loads were in "
        "flight",
    ),
    "A13": Rule(
        "The bytes of a copy are read when it is issued and published late; groups of one thread complete in order, "
        "operations of a group in any order.", "default", f"{_PTX}, 9.7.9.25.1.1",
    ),
    "A14": Rule(
        "When operations complete depends on the program, its inputs, the resident blocks and the seed alone.",
        "default", "ours",
    ),
    "A15": Rule(
        "Everything that can complete does so before a deadlock is reported, and before a batch of blocks ends.",
        "default", "ours",
    ),
    "A16": Rule(
        "A thread waits for its copies in bulk before it exits. An H200 completes them: the memory of the block stays "
        "until then.", "strict", "measured on an H100: 1.3M to 2.6M blocks each, 0 wrong",
    ),
    "A17": Rule(
        "barrier.cluster.arrive releases and its wait acquires, for the cluster; what lies between them is ordered "
        "with nothing. An arrival with .relaxed passes on what fences of its thread released, fence.mbarrier_init too.",
        "default", f"{_PTX}, 9.7.13.4",
    ),
    "A18": Rule(
        "What other blocks do in the shared memory of a block happens before the last thread of that block ends. "
        "Arrivals at its mbarriers, and operations that complete there, need a thread of it that has found their phase "
        "complete; for an arrival any other order does, too. For a load "
        "whose value is used before it, an arrival at the barrier of the cluster with .relaxed is enough.", "default",
        "measured: ld, st, atom, arrivals, st.async and copies to a block that exited, each fails the launch",
    ),
    "A19": Rule(
        "A copy reads its tensor map through a proxy of its own. What threads of this launch have written to a map in "
        "global memory crosses to it by fence.proxy.tensormap::generic.acquire at the address of the map, by the "
        "thread of the copy or one that is ordered before it.", "default", "measured: without a fence, after "
        "__threadfence, fence.proxy.async or a release alone, 100 % of 5.3M copies each used the old map; after a "
        "release and an acquire, 0 of 42M",
    ),
    "A20": Rule(
        "Before that acquire, a thread releases what it wrote to the map: tensormap.cp_fenceproxy or "
        "fence.proxy.tensormap::generic.release.", "default", f"{_PTX}, 9.7.13.4; measured: after an acquire "
        "alone, within one thread, up to 0.57 % of 5.3M copies used the old map",
    ),
    "A21": Rule(
        "A copy reads its tensor map until it is complete. Before a byte of the map changes, its mbarrier is waited "
        "at, or its thread commits a group and waits for it, with or without .read; that counts for loads, too, though "
        "they join no group.", "default", "measured: without a wait, 54 to 99.9 % of 5.3M copies each used the new "
        "map; after a wait, 0, unless ptxas moved a plain store in front of a wait with .read",
    ),
    "A22": Rule(
        "A load from shared memory reads until its value is used for the first time, or its thread executes a "
        "fence.proxy.async. If its thread signals before that, a copy in bulk over the place has to come after that, "
        "or after a fence.proxy.async that is ordered behind the signal. A mov does not count: ptxas removes it. A "
        "wait for products counts as a use of few loads of a warp: of 8 wavefronts together, or one for each 8 columns "
        "of D of the products behind the loads, 32 at most.",
        "default", "measured: loads in flight at the signal, 25 to 67 % of 5 to 10G wrong, after an arrival with "
        "release, a named barrier and fence.acq_rel, too; after a use, or a proxy fence of readers or issuer, 0; 8 "
        "wavefronts before m64n8 0 of 4G, 17 up to 0.1 %, 32 up to 85 %; 128 before m64n256 0 of 2G with four steps, "
        "96 % with two; while other warps load with conflicts, 1 before m64n8 36 to 80 %, which is not reported",
    ),
    "A23": Rule(
        "What cp.async has written and its thread has waited for crosses to the async proxy by a fence.proxy.async, as "
        "any other write of a thread does.", "strict", f"{_PTX}, 9.7.9.25.2; measured: without a fence, read by a bulk "
        "store or as A or B of wgmma, 0 of 284G old, with a wait for all or at an mbarrier",
    ),
    "A24": Rule(
        "tensormap.cp_fenceproxy copies a map for every lane of its warp: what one of them has written to the map in "
        "shared memory has to be ordered before all of them, by bar.warp.sync.", "strict",
        f"{_PTX}, 9.7.9.27; measured: without it, 0 of 106M copies used the old map, whichever lanes wrote",
    ),
    "A25": Rule(
        "Until a warp has waited for its product, no step writes a register of the product's D, nor one of its A under "
        "a guard or in a part of the warp. A mov of what the same place of D holds does not count.", "default",
        f"{_PTX}, 9.7.15.7; measured: up to 87 % of 101M wrong at -O3, up to 100 % of 15M at -O1, none at -O0",
    ),
    "A26": Rule(
        "Nor does a step that a whole warp executes write a register of its A.", "strict", f"{_PTX}, 9.7.15.7; "
        "measured: ptxas takes another register, 0 of 2.4G wrong",
    ),
    "A27": Rule(
        "Between two products whose registers of D overlap in part lies a wgmma.fence, also after a wait for the "
        "first.", "default", "measured: 100 % of 101M wrong each, at -O3 and -O1; with a fence 0",
    ),
    "A28": Rule(
        "A wgmma.fence precedes the first product of a warp, and lies between an access to a register and a product "
        "that has it in A or D, and between products of other shapes, or at other places, that share a register of D.",
        "strict", f"{_PTX}, 9.7.15.7; measured: ptxas puts in what is missing, 0 of 12.6G wrong at -O3",
    ),
    "A29": Rule(
        "ptxas 13.0 moves a plain store in front of a wait_group.read directly before it. Such a wait does not protect "
        "a tensor map from the store, unless a barrier or a fence lies between.", "default", "measured: 52 to 99 % of "
        "5.3M copies each used the new map; with bar.warp.sync or fence.acq_rel.cta between, 0",
    ),
})  # fmt: skip
"""By name."""
