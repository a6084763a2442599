"""Threads: what a kernel written in Python computes with.

All warps of a batch of blocks go through the kernel together, instruction by instruction. Divergence is a mask: inside
`with t.where(p)` only lanes with p act. Python's own loops and ifs are the same for all threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .._arguments import is_integer
from ..arithmetic.engines import Engine
from ..errors import MnemonicError, OperandError, UnknownNameError, UnsupportedError, WarpmmaError, shown
from ..execution import execute
from ..isa import Instruction, parse
from ..layouts import Operand
from ..machine.accesses import Accesses
from ..machine.costs import Costs
from ..machine.hazards import HazardError, Reporter, Site, caller
from ..machine.memory import GlobalMemory, SharedMemory
from ..machine.warps import Warps
from ..operations import UNDEFINED, operation
from ..registers import LANES
from .literals import several
from .values import Register

__all__ = ["Threads"]

Array = npt.NDArray[Any]

_ACCESSES = ("ld.", "st.", "ldmatrix.", "stmatrix.", "cp.async")
_BARRIERS = ("bar.sync", "bar.cta.sync", "barrier.sync", "barrier.cta.sync", "barrier.sync.aligned",
             "barrier.cta.sync.aligned")  # fmt: skip
_NAMES = ("tid", "ntid", "ctaid", "nctaid", "laneid", "warpid", "target", "where", "any", "update", "constant",
          "register")  # fmt: skip
_CUDA = {
    "threadIdx": "t.tid", "blockIdx": "t.ctaid", "blockDim": "t.ntid", "gridDim": "t.nctaid",
    "syncthreads": 't("bar.sync")', "syncwarp": 't("bar.warp.sync", membermask)',
}  # fmt: skip
_SPECIAL = (
    "clock", "clock_hi", "clock64", "globaltimer", "globaltimer_lo", "globaltimer_hi", "smid", "nsmid", "gridid",
    "nwarpid", "lanemask_eq", "lanemask_le", "lanemask_lt", "lanemask_ge", "lanemask_gt", "clusterid", "nclusterid",
    "cluster_ctaid", "cluster_nctaid", "cluster_ctarank", "cluster_nctarank", "is_explicit_cluster",
    "dynamic_smem_size", "total_smem_size", "aggr_smem_size",
)  # fmt: skip


class Threads(Warps):
    """The threads of a batch of blocks.

    `t(mnemonic, operands...)` executes an instruction, and returns its results: a register, or a tuple of them.
    Operands are registers, or Python numbers where PTX takes immediates; those of an `mma` are sequences of registers,
    one for each fragment, and then what PTX writes after C.

    Attributes
    ----------
    tid, ntid, ctaid, nctaid : tuple of Register
        PTX's special registers, x, y and z.
    laneid, warpid : Register
    target : str
    """

    def __init__(
        self, *, grid: tuple[int, int, int], block: tuple[int, int, int], blocks: range, target: str,
        memory: GlobalMemory, shared: int, reporter: Reporter, costs: Costs, engine: Engine, threads: int | None,
    ) -> None:  # fmt: skip
        super().__init__(len(blocks), int(np.prod(block)), target, reporter, costs)
        self._engine, self._workers = engine, threads
        self._shared = SharedMemory(reporter, len(blocks), self.shape[1], shared)
        self._accesses = Accesses(self, memory, self._shared)
        linear = np.arange(self.shape[1] * LANES).reshape(1, -1, LANES)
        self.tid = self._coordinates(linear, block)
        self.ctaid = self._coordinates(np.array(blocks).reshape(-1, 1, 1), grid)
        self.ntid = tuple(self.constant(n) for n in block)
        self.nctaid = tuple(self.constant(n) for n in grid)
        self.laneid = self._filled(linear % LANES, np.uint32)
        self.warpid = self._filled(linear // LANES, np.uint32)

    def _coordinates(self, linear: Array, extent: tuple[int, int, int]) -> tuple[Register, ...]:
        x, y, _ = extent
        return tuple(self._filled(i, np.uint32) for i in (linear % x, linear // x % y, linear // (x * y)))

    def __getattr__(self, name: str) -> Any:
        hint = f": CUDA's {name} is {_CUDA[name]} here." if name in _CUDA else ""
        if name in _SPECIAL:
            hint = f": PTX's special register %{name} is not simulated."
        raise UnknownNameError.of("Threads", name, _NAMES, hint)

    def __call__(self, mnemonic: str, *operands: Any) -> Any:
        """Execute an instruction.

        Raises
        ------
        WarpmmaError
            No such instruction, operands that do not fit it, or a hazard (`HazardError`). A note says where.
        """
        if not isinstance(mnemonic, str):
            raise MnemonicError(f"a mnemonic is a string such as 'ld.shared.b32'; got {shown(mnemonic)}")
        site = caller(mnemonic)
        self.costs.count(site, self.active)
        try:
            return self._execute(site, operands)
        except HazardError:
            raise
        except WarpmmaError as error:
            error.add_note(f"executing {mnemonic} at {site.place} on {self.target}")
            raise

    def _execute(self, site: Site, operands: Sequence[Any]) -> Any:
        if site.mnemonic.startswith("mma."):
            return self._mma(site, *operands)
        if site.mnemonic.startswith(_ACCESSES):
            return self._accesses(site, operands)
        if site.mnemonic.startswith("bar"):
            return self._barrier(site, operands)
        return self._operation(site, *operands)

    def _operation(self, site: Site, *operands: Any) -> Any:
        row = operation(site.mnemonic, self.target)
        if len(operands) != len(row.inputs):
            raise OperandError(f"{row.mnemonic} takes {len(row.inputs)} operands ({row.syntax}); got {len(operands)}")
        given = []
        for i, (x, kind, type_) in enumerate(zip(operands, row.inputs, row.types, strict=True)):
            if kind != "imm":
                x = self.operand(x, type_, kind, f"{row.mnemonic}: operand {i} of {row.syntax}")
                if x.kind != kind:
                    raise OperandError(f"{row.mnemonic}: operand {i} of {row.syntax} is {x.kind}; expected {kind}")
            given.append(x)
        self.read(site, [x for x in given if isinstance(x, Register)])
        bits = [x.bits if isinstance(x, Register) else x for x in given]
        if row.lanes:
            undefined = row.undefined_lanes(*bits, active=self.active)
            why = f"the result is undefined: {UNDEFINED}"
            self.reporter.report("divergent", site, self.active & undefined, detail=why)
            results = row(*bits, active=self.active, undefined="zero")
        else:
            results = row(*bits)
        made = tuple(self.made(np.broadcast_to(x, self.shape)) for x in results)
        return made[0] if len(made) == 1 else made

    # Matrix units

    def _mma(self, site: Site, *operands: Any) -> tuple[Register, ...]:
        record = parse(site.mnemonic)
        self.check_whole(site)
        if len(operands) < 3:
            raise OperandError(f"{record} takes fragments of A, B and C; got {len(operands)} operands")
        names: tuple[Operand, ...] = ("A", "B", "C")
        given = {name: self._fragment(site, record, name, x) for name, x in zip(names, operands, strict=False)}
        words, numbers = self._words(site, record, operands[3:])
        # Warps that do not execute it may hold anything, such as metadata that would be refused.
        some = self.active.any(axis=-1)
        chosen = slice(None) if some.all() else some
        extra: dict[str, Any] = {name: x[chosen] for name, x in words.items()} | numbers
        d = execute(
            record, given["A"][chosen], given["B"][chosen], given["C"][chosen], target=self.target,
            engine=self._engine, threads=self._workers, **extra,
        )  # fmt: skip
        if not isinstance(chosen, slice):
            d, part = np.zeros((*some.shape, *d.shape[1:]), d.dtype), d
            d[some] = part
        return tuple(self.made(d[..., i, :]) for i in range(d.shape[-2]))

    def _fragment(self, site: Site, record: Instruction, name: Operand, fragment: Any) -> Array:
        layout = record.layout(name)
        kind = f"b{layout.packing.width}"
        given = fragment if isinstance(fragment, list | tuple) else [fragment]
        type_ = several(record.type(name), layout.packing)
        registers = [self.operand(x, type_, kind, f"{record}: {name}[{i}]") for i, x in enumerate(given)]
        if len(registers) != layout.registers or any(x.kind != kind for x in registers):
            got = ", ".join(x.kind for x in registers)
            expected = f"{layout.registers} of {kind}"
            raise OperandError(f"{record}: {name} is {len(registers)} registers ({got}); expected {expected}")
        return np.stack(self.read(site, registers), axis=-2)

    def _words(
        self, site: Site, record: Instruction, operands: Sequence[Any]
    ) -> tuple[dict[str, Array], dict[str, Any]]:  # fmt: skip
        """Operands after C, as `execute` names them: registers, and what is the same for all warps."""
        expected = []
        if record.sparse:
            expected += ["metadata", "selector"]
        if record.block_scale:
            expected += ["scale_a", "(byte_id_a, thread_id_a)", "scale_b", "(byte_id_b, thread_id_b)"]
        pairs = [x for name, x in zip(expected, operands, strict=False) if name.startswith("(")]
        if len(operands) != len(expected) or not all(isinstance(x, list | tuple) and len(x) == 2 for x in pairs):
            raise OperandError(f"{record}: after C come {', '.join(expected) or 'no operands'}; got {len(operands)}")
        words: dict[str, Array] = {}
        numbers: dict[str, Any] = {}
        for name, x in zip(expected, operands, strict=True):
            if name.startswith("("):
                numbers |= zip(name[1:-1].split(", "), x, strict=True)
            elif name == "selector":
                numbers[name] = x
            else:
                register = self.operand(x, "u32", "b32", f"{record}: {name}")
                if register.kind != "b32":
                    raise OperandError(f"{record}: {name} is a {register.kind} register; expected b32")
                (words[name],) = self.read(site, [register])
        return words, numbers

    # Barriers

    def _barrier(self, site: Site, operands: Sequence[Any]) -> None:
        if site.mnemonic == "bar.warp.sync" and len(operands) == 1:
            (mask,) = self.read(site, [self.operand(operands[0], "u32", "b32", f"{site.mnemonic}: membermask")])
            named = (mask[..., None] >> np.arange(LANES, dtype=np.uint32)) & 1 != 0
            missing = (named & ~self.active[..., None, :]).any(axis=-1)
            why = "its membermask names lanes that are masked off"
            self.reporter.report("divergent", site, self.active & missing, detail=why)
            return
        if site.mnemonic not in _BARRIERS:
            raise MnemonicError(f"{site.mnemonic!r} with {len(operands)} operands is not simulated; expected bar.sync")
        if operands and not (len(operands) == 1 and is_integer(operands[0]) and operands[0] == 0):
            raise UnsupportedError(f"{site.mnemonic} {shown(operands)}: only barrier 0, of all threads, is simulated")
        here: Array = np.any(self.active, axis=(1, 2))
        missing = self.exists & ~self.active & here[:, None, None]
        why = "this thread is masked off; all threads of the block must come"
        self.reporter.report("barrier", site, missing, detail=why)
        self.costs.barrier(int(here.sum()))
        self._shared.barrier(here)
