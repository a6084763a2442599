"""Rows of loads, stores, copies, barriers and exits."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ..isa import POLICY, Signature, address, numbered, value
from .records import Direction, InstructionRow, MemoryOrder, MemoryScope, RegisterType, register_type
from .windows import Space


@dataclass(frozen=True, kw_only=True)
class Access(InstructionRow):
    """One `ld`, `ldu` or `st`: each lane moves `count` contiguous elements.

    Attributes
    ----------
    direction : {"load", "store"}
    space : {"generic", "global", "shared", "local", "const", "param"}
        Addresses in "generic" and "global" are b64 registers; in the other spaces, which are small, b32 or b64.
    count : int
        Elements: 1, or 2, 4, 8 for `.v2`, `.v4`, `.v8`.
    type : str
        PTX type of an element: "b32", "s8", "f64"; "b128" is two b64 registers, low first.
    order : {"weak", "relaxed", "acquire", "release"}
        `.volatile` and `.mmio` are relaxed.
    scope : {"cta", "cluster", "gpu", "sys"}
        Scope of an access that is not weak.
    nc : bool
        Whether it reads through the non-coherent cache, which may not see the kernel's own writes.
    hint : bool
        Whether a cache policy, a b64 register that changes no bit, is the last operand.
    into : RegisterType or None
        Class of the registers that a load fills, if wider than the element, which is then extended.
    """

    direction: Direction
    space: Space
    count: int = 1
    type: str
    order: MemoryOrder = "weak"
    scope: MemoryScope = "sys"
    nc: bool = False
    hint: bool = False
    into: RegisterType | None = None

    @cached_property
    def bits(self) -> int:
        """Bits of an element in memory."""
        return int(self.type[1:])

    @cached_property
    def signed(self) -> bool:
        """Whether an element narrower than its register is sign-extended."""
        return self.type[0] == "s"

    @cached_property
    def size(self) -> int:
        """Bytes per lane; its address is a multiple of that."""
        return self.count * self.bits // 8

    @cached_property
    def kind(self) -> RegisterType:
        """Class of the registers that hold an element: b16 also for 8 bits, b64 also for 128."""
        return self.into or ("b64" if self.bits == 128 else register_type(self.type))

    @cached_property
    def registers(self) -> int:
        """Registers per lane: one for each element, two for 128 bits."""
        return 2 if self.bits == 128 else self.count

    @cached_property
    def word(self) -> np.dtype[Any]:
        """NumPy type of a register's part of the bytes in memory: at most 64 bits."""
        return np.dtype(f"{'i' if self.signed else 'u'}{min(self.bits, 64) // 8}")

    @cached_property
    def observes(self) -> bool:
        """Whether it may observe concurrent writes: threads that spin on it let others run."""
        return self.direction == "load" and self.order != "weak"

    @cached_property
    def signature(self) -> Signature:
        """Its operands: `p` is the address."""
        load, type_ = self.direction == "load", "b64" if self.bits == 128 else self.type
        braces: Any = "never" if self.bits == 128 else "optional"
        where = address("p", self.space)
        data = numbered(
            "d" if load else "a", self.registers, type_, kind=self.kind, braces=braces, wider=True,
            role="result" if load else "source", sink="element" if load else "",
        )  # fmt: skip
        return (*((data, where) if load else (where, data)), *[POLICY] * self.hint)


@dataclass(frozen=True, kw_only=True)
class Copy(InstructionRow):
    """One `cp.async` from global to shared memory, asynchronous to its thread.

    Attributes
    ----------
    sizes : tuple of int
        Numbers of bytes that it may copy; addresses are multiples of that number. It may read fewer bytes from the
        source; zeros then fill the rest.
    hint : bool
        Whether a cache policy is the last operand.
    """

    sizes: tuple[int, ...]
    hint: bool = False

    @cached_property
    def signature(self) -> Signature:
        """Its operands: `p` is the address in shared memory, `q` that in global memory."""
        size = value("size", "imm", values=self.sizes)
        source = value("src-size | ignore-src", "u32", other="pred", optional=True)
        return (address("p", "shared"), address("q", "global"), size, source, *[POLICY] * self.hint)


@dataclass(frozen=True, kw_only=True)
class CopyGroup(InstructionRow):
    """A commit of a group of a thread's `cp.async` or `cp.async.bulk`, or a wait for groups.

    Attributes
    ----------
    action : {"commit", "wait_group", "wait_all"}
    bulk, read : bool
        Whether it applies to `cp.async.bulk`; whether it waits only until their sources have been read.
    """

    action: Literal["commit", "wait_group", "wait_all"]
    bulk: bool = False
    read: bool = False

    @cached_property
    def signature(self) -> Signature:
        """Its operands: `n` is how many groups may remain pending."""
        return (value("n", "imm", values=range(1 << 32)),) if self.action == "wait_group" else ()


@dataclass(frozen=True, kw_only=True)
class Barrier(InstructionRow):
    """One barrier of a block or a warp.

    Attributes
    ----------
    action : {"sync", "arrive", "red", "warp", "wait"}
        "sync": arrive and wait; "arrive": arrive without waiting; "red": arrive, wait and reduce all threads'
        predicates; "warp": wait for the lanes of a membermask; "wait": wait, without arriving, at the cluster's
        barrier.
    cluster : bool
        Whether it is the barrier of the cluster.
    orders : bool
        Whether it orders memory: it is not `.relaxed`.
    aligned : bool
        Whether all lanes of a warp arrive together.
    reduction : {"popc", "and", "or"} or None
        For "red": how many predicates are true, whether all are, whether any is.
    """

    action: Literal["sync", "arrive", "red", "warp", "wait"]
    aligned: bool
    cluster: bool = False
    orders: bool = True
    reduction: Literal["popc", "and", "or"] | None = None

    @property
    def outputs(self) -> tuple[RegisterType, ...]:
        """Classes of the registers that it writes."""
        return () if self.reduction is None else ("b32" if self.reduction == "popc" else "pred",)

    @cached_property
    def signature(self) -> Signature:
        """Its operands: `a` is the number of the barrier, `b` the number of threads, `p` a predicate."""
        if self.cluster:
            return ()
        if self.action == "warp":
            return (value("membermask", "u32", role="mask"),)
        arrives = self.action == "arrive"
        threads = value("b", "u32", literal=True, values=range(32 * arrives, 1 << 32, 32), optional=not arrives)
        number = value("a", "u32", literal=True, values=range(16), default=None if arrives else 0)
        given = (number, threads)
        if self.reduction is None:
            return given
        return (value("d", self.outputs[0], role="result"), *given, value("p", "pred"))


@dataclass(frozen=True, kw_only=True)
class Exit(InstructionRow):
    """The end of a thread."""

    @property
    def signature(self) -> Signature:
        """No operands."""
        return ()
