"""Kernels that do not wait for an asynchronous copy: warps of their own, so that nothing else is in the way."""

from __future__ import annotations

from typing import Any

from hazard_kernels.case import COMMIT, COPY, EVERY, LDSM1, ONE, WAIT, Case, X


def read_before_wait(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # there
    t(COMMIT)
    t("ld.shared.b8", t.laneid * 16 + 15)  # here


def matrix_before_wait(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # there
    t(LDSM1, t.laneid * 16)  # here


def write_before_wait(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # there
    t("st.shared.b32", t.laneid * 16, 0)  # here


def copy_before_wait(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # there
    t(COMMIT)
    t(COPY, t.laneid * 16, x, 16)  # here


def not_committed(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # there
    t(WAIT, 0)
    t("ld.shared.b32", t.laneid * 16)  # here


def waits_for_too_few(t: Any, x: Any) -> None:
    for group in range(3):
        t(COPY, t.laneid * 16 + group * 512, x, 16)  # there
        t(COMMIT)
    t(WAIT, 1)
    t("ld.shared.b32", t.laneid * 16 + 512)
    t("ld.shared.b32", t.laneid * 16 + 1024)  # here


def waits_for_others(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # there
    t(COMMIT)
    with t.where(t.laneid < 30):
        t(WAIT, 0)
    t("ld.shared.b32", t.laneid * 16)  # here


def commits_for_others(t: Any, x: Any) -> None:
    t(COPY, t.laneid * 16, x, 16)  # there
    with t.where(t.laneid < 30):
        t(COMMIT)
    t(WAIT, 0)
    t("ld.shared.b32", t.laneid * 16)  # here


def read_from_another_warp(t: Any, x: Any) -> None:
    with t.where(t.warpid == 0):
        t(COPY, t.laneid * 16, x, 16)  # there
    t("bar.sync")
    with t.where(t.warpid == 1):
        t("ld.shared.b32", t.laneid * 16)  # here


def unfenced(t: Any, x: Any) -> None:
    t("st.shared.b32", t.laneid * 4, t.laneid)  # there
    t("bar.warp.sync", EVERY)
    with t.where(t.laneid == 0):
        t("cp.async.bulk.global.shared::cta.bulk_group", x, 0, 128)  # here
        t("cp.async.bulk.commit_group")
        t("cp.async.bulk.wait_group", 0)


PROXY = [Case(unfenced, "proxy", address=0, args=X, options=ONE, says="no fence.proxy.async lies on the way")]
PENDING = [
    Case(
        read_before_wait,
        "pending",
        address=15,
        count=32,
        args=X,
        options=ONE,
        says="may still write it, and was not waited for",
    ),
    Case(matrix_before_wait, "pending", address=0, count=8, args=X, options=ONE),
    Case(write_before_wait, "pending", address=0, count=32, args=X, options=ONE),
    Case(copy_before_wait, "pending", address=0, count=32, args=X, options=ONE),
    Case(not_committed, "pending", address=0, count=32, args=X, options=ONE),
    Case(waits_for_too_few, "pending", address=1024, count=32, args=X, options=ONE),
    Case(waits_for_others, "pending", lane=30, address=480, count=2, args=X, options=ONE),
    Case(commits_for_others, "pending", lane=30, address=480, count=2, args=X, options=ONE),
    Case(read_from_another_warp, "pending", warp=1, address=0, count=32, args=X),
]
