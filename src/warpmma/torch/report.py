"""The report of an override: products by instruction, and operators left to PyTorch."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..arithmetic import Evidence
from ..isa import TARGETS, parse_any
from ..products import FMA
from .settings import known_by

# By the first number of the compute capability: what kernels of libraries there take in place of mma.
_TCGEN05 = "mma.sync: libraries on such a GPU take tcgen05.mma, which is not simulated"
_NOTES = {
    9: 'mma.sync: libraries on such a GPU take wgmma; target="sm_90a", instruction="wgmma" computes it',
    10: _TCGEN05, 11: _TCGEN05,
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class ReplacedProduct:
    """Products of one kind that an override computed.

    Attributes
    ----------
    op : str
        What PyTorch called, as "aten::addmm".
    shape : tuple of int
        m, n and k.
    batch : int
        Matrices of a batch.
    dtypes : tuple of str
        Of A, B and D, as PyTorch names them.
    instruction : str
        Mnemonic of what each step along k took; "fma.rn.f32" where float32 is multiplied without tensor cores.
    target : str
    split_k : int
        Into how many slices k was cut.
    promote_every : int
        After how much of k sums were added to an f32 sum; 0 for never.
    order : str
        Of a convolution the order of k, as the option `convolution_k` writes it.
    """

    op: str
    shape: tuple[int, int, int]
    batch: int
    dtypes: tuple[str, str, str]
    instruction: str
    target: str
    split_k: int
    promote_every: int
    order: str = ""

    @property
    def evidence(self) -> Evidence:
        """The evidence for what the instruction computes on the target."""
        return known_by(FMA if self.instruction == str(FMA) else parse_any(self.instruction), self.target)

    def __str__(self) -> str:
        m, n, k = self.shape
        size = f"{f'{self.batch} of ' * (self.batch != 1)}{m}x{n}x{k}"
        along = f", {self.split_k} slices of k" * (self.split_k > 1)
        along += f", promoted every {self.promote_every}" * (self.promote_every > 0)
        along += f", k = {self.order}" * bool(self.order)
        a, b, d = self.dtypes
        return f"{self.op} {size} {a if a == b else f'{a} x {b}'} -> {d}: {self.instruction}{along}"


class ProductReport:
    """Products that an override computed, and operators that it left to PyTorch.

    Attributes
    ----------
    target : str
    products : Counter of ReplacedProduct
        How often each was computed.
    left : Counter of str
        How often PyTorch's own kernels computed something with sums of products inside: recurrent layers,
        factorizations, products of integers; by name, with the type.
    """

    def __init__(self, target: str) -> None:
        self.target = target
        self.products: Counter[ReplacedProduct] = Counter()
        self.left: Counter[str] = Counter()

    @property
    def instructions(self) -> dict[str, int]:
        """The number of products that each instruction computed, by mnemonic."""
        found: Counter[str] = Counter()
        for product, count in self.products.items():
            found[product.instruction] += count
        return dict(found)

    def __str__(self) -> str:
        lines = [f"products with the arithmetic of {self.target}: {self.products.total()}"]
        lines += [f"  {count} x {product}" for product, count in self.products.items()]
        note = _NOTES.get(TARGETS[self.target].capability[0])
        if note and any(p.instruction.startswith("mma.") and p.dtypes[0] != "float64" for p in self.products):
            lines.append(f"  ({note})")
        if self.left:
            lines.append("not replaced, computed by PyTorch:")
            lines += [f"  {count} x {name}" for name, count in self.left.items()]
        return "\n".join(lines)
