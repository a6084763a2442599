"""Kernels with addresses beyond memory, and misaligned ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from hazard_kernels.case import BASE, COPY, LDSM1, ONE, Case, words


def beyond_shared(t: Any) -> None:
    t("st.shared.b8", t.tid[0] + 4033, 0)  # here


def beyond_shared_by_a_part(t: Any) -> None:
    t("st.shared.v2.b64", t.tid[0] * 16, 0, 0)  # here


def negative_shared(t: Any) -> None:
    t("st.shared.b32", t.tid[0] * 4 - 4, 0)  # here


def huge_shared(t: Any) -> None:
    t("st.shared.b32", t.constant(2**62 - 4, "b64"), 0)  # here


def beyond_row(t: Any) -> None:
    t(LDSM1, (t.laneid - 7) * 16)  # here


def beyond_global(t: Any, x: Any, y: Any) -> None:
    t("ld.global.b8", x + t.laneid * 33)  # here


def larger_than_array(t: Any, x: Any, y: Any) -> None:
    t("ld.global.b64", y)  # here


def negative_global(t: Any, x: Any, y: Any) -> None:
    t("ld.global.b32", x - t.laneid * 4)  # here


def between_arrays(t: Any, x: Any, y: Any) -> None:
    t("st.global.b64", y - 8 * (t.laneid + 1), 0)  # here


def beyond_end_of_space(t: Any, x: Any, y: Any) -> None:
    t("ld.global.v4.b32", t.constant(2**63 - 16, "b64"))  # here


def read_only(t: Any, x: Any, y: Any) -> None:
    t("st.global.b32", y + t.laneid * 4, 0)  # here


def beyond_source(t: Any, x: Any, y: Any) -> None:
    t(COPY, t.laneid * 16, x + (t.laneid + 33) * 16, 16)  # here


def misaligned_vector(t: Any) -> None:
    t("st.shared.v4.b32", t.laneid * 8, 0, 0, 0, 0)  # here


def misaligned_global(t: Any, x: Any, y: Any) -> None:
    t("ld.global.b64", x + t.laneid * 4)  # here


def misaligned_row(t: Any) -> None:
    t("st.shared.v4.b32", t.laneid * 16, 0, 0, 0, 0)
    at = t.laneid * 16
    with t.where(t.laneid == 6):
        at = t.update(at, at + 8)
    t(LDSM1, at)  # here


def misaligned_copy(t: Any, x: Any, y: Any) -> None:
    t("cp.async.ca.shared.global", t.laneid * 8 + 4, x, 8)  # here


def misaligned_source(t: Any, x: Any, y: Any) -> None:
    t(COPY, t.laneid * 16, x + t.laneid * 8, 16, 4)  # here


def beyond_local(t: Any) -> None:
    t("st.local.b32", t.laneid * 4 + (1 << 19) - 64, 0)  # here


frozen = words()
frozen.flags.writeable = False
PAIR = (np.zeros(1000, np.uint8), np.zeros(1000, np.uint8))
ADDRESSES = [
    Case(beyond_shared, "bounds", warp=1, lane=31, address=4096, says="shared memory, which has 4096 bytes"),
    Case(beyond_shared_by_a_part, "bounds", lane=6, address=96, options={"block": 7, "shared": 111}),
    Case(negative_shared, "bounds", lane=0, address=2**32 - 4),
    Case(huge_shared, "bounds", lane=0, address=2**62 - 4, count=64),
    Case(beyond_row, "bounds", lane=0, address=2**32 - 112, count=7, options=ONE),
    Case(beyond_global, "bounds", lane=31, address=BASE + 1023, args=PAIR, options=ONE,
         says="args[1] (1000 bytes from 0x7f0000000400), begins 1 bytes later"),
    Case(larger_than_array, "bounds", address=BASE + 1280, count=32, args=(words(), words(1)), options=ONE,
         says="args[1] (4 bytes from 0x7f0000000500), ends 4 bytes too early"),
    Case(negative_global, "bounds", lane=1, address=BASE - 4, count=31, args=PAIR, options=ONE,
         says="4 bytes outside of all arrays; the nearest, args[0] (1000 bytes from 0x7f0000000000), begins 4 bytes"),
    Case(between_arrays, "bounds", lane=0, address=BASE + 1016, count=3, args=PAIR, options=ONE,
         says="begins 8 bytes later"),
    Case(beyond_end_of_space, "bounds", address=2**63 - 16, count=32, args=PAIR, options=ONE),
    Case(read_only, "bounds", address=BASE + 1280, count=32, args=(words(), frozen), options=ONE, says="read-only"),
    Case(beyond_source, "bounds", lane=29, address=BASE + 992, count=2, args=PAIR, options=ONE,
         says="ends 8 bytes too early"),
    Case(misaligned_vector, "misaligned", lane=1, address=8, count=32, says="a multiple of 16"),
    Case(misaligned_global, "misaligned", lane=1, address=BASE + 4, count=32, args=PAIR, says="a multiple of 8"),
    Case(misaligned_row, "misaligned", lane=6, address=104, options=ONE, says="a multiple of 16"),
    Case(misaligned_copy, "misaligned", address=4, count=32, args=PAIR, options=ONE, says="a multiple of 8"),
    Case(misaligned_source, "misaligned", lane=1, address=BASE + 8, count=16, args=PAIR, options=ONE, says="of 16"),
    Case(beyond_local, "stack", lane=16, address=1 << 19, count=32, says="beyond the 524288 that a thread has"),
]  # fmt: skip
