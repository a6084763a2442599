"""Kernels that read memory or registers that nobody wrote."""

from __future__ import annotations

from typing import Any

from hazard_kernels.case import BASE, COPY, LDSM, MMA, ONE, OUT, Case, words


def unwritten_shared(t: Any) -> None:
    with t.where(t.tid[0] != 37):
        t("st.shared.b32", t.tid[0] * 4, 0)
    t("bar.sync")
    t("ld.shared.b32", t.tid[0] * 4)  # here


def unwritten_byte(t: Any) -> None:
    with t.where(t.laneid != 3):
        t("st.shared.b8", t.tid[0], 0)
    t("ld.shared.v2.b64", (t.laneid >> 4) * 16)  # here


def unwritten_row(t: Any) -> None:
    with t.where(t.laneid < 31):
        t("st.shared.v4.b32", t.laneid * 16, 0, 0, 0, 0)
    t(LDSM, t.laneid * 16)  # here


def unwritten_output(t: Any, x: Any, y: Any) -> None:
    with t.where(t.laneid < 20):
        t("st.global.b32", y + t.laneid * 4, t("ld.global.b32", x + t.laneid * 4))
    t("ld.global.b32", y + t.laneid * 4)  # here


def unwritten_source(t: Any, x: Any, y: Any) -> None:
    t(COPY, t.laneid * 16, y + t.laneid * 16, 16)  # here


def masked_write(t: Any) -> None:
    with t.where(t.laneid < 5):
        x = t.laneid + 1
    t("st.shared.b32", t.tid[0] * 4, x)  # here


def masked_update(t: Any) -> None:
    with t.where(t.laneid < 5):
        x = t.laneid + 1
        with t.where(t.laneid > 1):
            x = t.update(x, x * 2)
    with t.where(t.laneid < 6):
        x + 1  # here


def masked_update_with_poison(t: Any) -> None:
    with t.where(t.laneid == 7):
        x = t.laneid + 1
    x = t.update(t.laneid, x)
    x + 1  # here


def masked_address(t: Any) -> None:
    with t.where(t.laneid < 31):
        at = t.laneid * 4
    t("st.shared.b32", at, 0)  # here


def masked_predicate(t: Any) -> None:
    with t.where(t.laneid < 31):
        p = t.laneid < 4
    with t.where(p):  # here
        pass


def masked_multiplicand(t: Any) -> None:
    with t.where(t.laneid != 9):
        a = t.laneid + 0
    zero = [t.constant(0)] * 4
    t(MMA, [zero[0], a, a, a], zero[:2], zero)  # here


def masked_operand(t: Any) -> None:
    with t.where(t.laneid != 9):
        a = t.laneid + 0
    t("prmt.b32", a, a, 0x3210)  # here


def shuffled_from_nobody(t: Any) -> None:
    with t.where(t.laneid != 9):
        a = t.laneid + 0
    b, inside = t("shfl.sync.down.b32", a, 3, 31, 0xFFFFFFFF)
    with t.where(inside):
        b + 1  # here


def shuffled_by_nobody(t: Any) -> None:
    with t.where(t.laneid != 9):
        a = t.laneid + 0
    t("shfl.sync.idx.b32", t.laneid, a, 31, 0xFFFFFFFF)  # here


def masked_load(t: Any, x: Any, y: Any) -> None:
    with t.where(t.laneid != 9):
        a = t("ld.global.b32", x)
    t("st.global.b32", y + t.laneid * 4, a)  # here


UNWRITTEN = [
    Case(unwritten_shared, "unwritten", warp=1, lane=5, address=148, says="unwritten memory is read"),
    Case(unwritten_byte, "unwritten", address=0, count=16, options=ONE),
    Case(unwritten_row, "unwritten", lane=31, address=496, options=ONE),
    Case(unwritten_output, "unwritten", lane=20, address=BASE + 1280 + 80, count=12, args=OUT, options=ONE,
         says="args[1] is an Output"),
    Case(unwritten_source, "unwritten", address=BASE + 1280, count=32, args=OUT, options=ONE),
    Case(masked_write, "poison", lane=5, count=54, says="never wrote"),
    Case(masked_update, "poison", lane=5, count=2),
    Case(masked_update_with_poison, "poison", lane=0, count=62),
    Case(masked_address, "poison", lane=31, count=2),
    Case(masked_predicate, "poison", lane=31, count=2),
    Case(masked_multiplicand, "poison", lane=9, count=2, says="number 1 of 4"),
    Case(masked_operand, "poison", lane=9, count=2, says="number 0 of 3"),
    Case(shuffled_from_nobody, "poison", lane=6, count=2, says="given there what another lane never wrote"),
    Case(shuffled_by_nobody, "poison", lane=9, count=2, says="number 1 of 4"),
    Case(masked_load, "poison", lane=9, count=1, args=(words(), words()), options=ONE),
]  # fmt: skip
