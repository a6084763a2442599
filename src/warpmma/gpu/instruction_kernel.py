"""The CUDA kernel of a product that the GPU's own matrix instruction computes: one source for `mma` and `wgmma`.

1. A warp (of `mma`) or a warpgroup (of `wgmma`) makes one tile of D, of the instruction's shape; m8n8k4 with f16, which
   works on four matrices, has them side by side. A block has 256 threads, whose tiles lie one below the other.
2. Each thread gathers the elements of its fragments by the formulas of the record's layouts. Beyond the matrices
   elements are +0.
3. B of `wgmma` lies in shared memory, K-major and without a swizzle; A is in registers.
4. Metadata of a sparse A follow from the rows that its stored elements meet. All selectors find the same.
5. Registers of D are the next instruction's C. Partial sums and results are those of `product.cuh`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from ..errors import UnsupportedError
from ..isa import TARGETS, Instruction, MatrixInstruction, WarpgroupInstruction, printed
from ..layouts import Layout, MatrixDescriptor, Operand
from ..registers import LANES
from ..sparsity import sparse_a
from .cuda_driver import CudaGpu
from .kernel_text import source
from .product_kernel import MOST_SLICES, THREADS, ProductForm, ProductKernel, format_constants

_WORDS = {"f32": "float", "f64": "double"}
_CONSTRAINTS = {"float": "f", "double": "d", "u32": "r"}
_VALUES = {"f64": "double", "s32": "int"}
_LINES = 8  # rows of a core matrix, each of 16 bytes
_CHUNK = 16


def check_gpu(gpu: CudaGpu, target: str) -> None:
    """Raise `UnsupportedError` unless a GPU is the target."""
    if gpu.capability != TARGETS[target].capability:
        major, minor = gpu.capability
        raise UnsupportedError(
            f"engine='hardware' computes on the target itself: the GPU is {gpu.name}, sm_{major}{minor}, and the "
            f"target {target}; use engine='cuda', which has the bits of {target} on any GPU"
        )


@cache
def hardware_kernel(record: MatrixInstruction, target: str, form: ProductForm) -> ProductKernel:
    """Return the kernel of an instruction for a target; `UnsupportedError` for one that has none.

    The form says what results are; its recipe, which is the GPU's, and its k are not looked at.
    """
    if record.block_scale or not isinstance(record, Instruction | WarpgroupInstruction):
        raise UnsupportedError(
            f"engine='hardware' does not do {record}: this was not tested on a GPU with block scales; use engine='cuda'"
        )
    of_warpgroup = isinstance(record, WarpgroupInstruction)
    side_by_side = 1 if of_warpgroup else record.layout("D").matrices
    team, d_type = LANES * (4 if of_warpgroup else 1), record.d_type
    as_it_is = form.result == d_type == record.c_type and not form.alpha
    numbers: dict[str, int | str] = {
        "THREADS": THREADS, "TEAM": team, "ROWS": record.m, "COLUMNS": record.n, "INSTRUCTION": record.k,
        "MOST_SLICES": MOST_SLICES, "WARPGROUP": int(of_warpgroup), "SPARSE": int(record.sparse),
        "SIDE_BY_SIDE": side_by_side, "PARTIAL": int(form.partial), "TO_TF32": int(form.to_tf32),
        "HAS_ALPHA": int(form.alpha), "AS_IT_IS": int(as_it_is),
        "REGISTERS_AS_THEY_ARE": int(as_it_is and not form.partial), "NEXT_C": int(d_type == record.c_type),
    }  # fmt: skip
    if isinstance(record, WarpgroupInstruction):
        numbers |= _shared(record)
    if record.sparse:
        numbers |= {"WIDTH": sparse_a(record).pattern.width}
    formats = [format_constants(x, record.type(x)) for x in "ABCD"]  # type: ignore[arg-type]
    text = [
        f"// {record}, for {target}",
        *(f"#define {name} {value}" for name, value in numbers.items()), source("numbers.cuh"),
        f"typedef {'u64' if 'f64' in (record.a_type, d_type) else 'u32'} Code;",
        f"typedef {_VALUES.get(d_type, 'float')} Value;", *formats, format_constants("Result", form.result),
        source("matrices.cuh"), source("product.cuh"), *_fragments(record), _instruction(record),
        source("instruction.cuh"),
    ]  # fmt: skip
    return ProductKernel(
        text="\n".join(text), rows=record.m * (THREADS // team), columns=record.n * side_by_side,
        instruction=record.k, arch=target,
    )  # fmt: skip


def _shared(record: WarpgroupInstruction) -> dict[str, int | str]:
    """Lay B out in shared memory: columns of n in groups of eight, panels of 16 bytes of k."""
    octets = record.k * record.format("B").bits // 8
    group, panel = _LINES * _CHUNK, record.n * _CHUNK
    descriptor = MatrixDescriptor(start=0, leading=panel, stride=group)
    return {
        "OCTETS": octets, "GROUP_OF_LINES": group, "PANEL": panel, "DESCRIPTOR": f"{descriptor.word:#x}ull",
        "BITS_OF_B": record.format("B").bits,
    }  # fmt: skip


def _fragments(record: MatrixInstruction) -> Iterator[str]:
    """Write the fragments of all operands in registers, and of metadata."""
    for operand in _in_registers(record):
        yield _fragment(f"Fragment{operand}", record.layout(operand), _word(record, operand))
    if record.sparse:
        yield _fragment("Metadata", sparse_a(record).layout, "u32")


def _in_registers(record: MatrixInstruction) -> tuple[Operand, ...]:
    return ("D", "A", "C") if isinstance(record, WarpgroupInstruction) else ("D", "A", "B", "C")


def _word(record: MatrixInstruction, operand: Operand) -> str:
    return _WORDS.get(record.type(operand), "u32")


def _fragment(called: str, layout: Layout, word: str) -> str:
    """Write a layout: its registers, and the place of element i of a thread, by the layout's own formulas."""
    packing, formulas = layout.packing, layout.formulas()
    ptx = (
        "const int groupID = thread % 32 / 4, threadID_in_group = thread % 4, warpid = thread / 32; "
        "(void)groupID, (void)threadID_in_group, (void)warpid, (void)i;"
    )
    lines = [
        f"struct {called} {{", f"  typedef {word} Word;",
        f"  static constexpr int registers = {layout.registers}, each = {packing.per_register}, "
        f"slot = {packing.slot}, shift = {packing.shift};",
    ]  # fmt: skip
    for name, formula in (("row", "row"), ("column", "col"), ("matrix", "matrix")):
        lines += [
            f"  static __device__ __forceinline__ int {name}(int thread, int i) {{", f"    {ptx}",
            f"    return {formulas.get(formula, '0')};", "  }",
        ]  # fmt: skip
    return "\n".join([*lines, "};"])


def _instruction(record: MatrixInstruction) -> str:
    """Write the instruction as inline PTX, by the signature of its record."""
    numbers: dict[str, int] = {}
    results, operands = list[str](), list[str]()

    def bind(into: list[str], constraint: str, name: str, expression: str) -> None:
        into.append(f'"{constraint}"({expression})')
        numbers[name] = len(numbers)

    of_warpgroup = isinstance(record, WarpgroupInstruction)
    for operand in _in_registers(record)[: 2 if of_warpgroup else 4]:  # of wgmma D is C
        into, prefix = (results, "+" if of_warpgroup else "=") if operand == "D" else (operands, "")
        constraint, x = _CONSTRAINTS[_word(record, operand)], operand.lower()
        for i in range(record.layout(operand).registers):
            bind(into, prefix + constraint, f"{x}{i}", f"{x}[{i}]")
    if of_warpgroup:
        bind(operands, "l", "b-desc", "b")
    if record.sparse:
        bind(operands, "r", "metadata", "metadata")
    words = {"selector": "0x0", "scale-d": "1", "imm-scale-a": "1", "imm-scale-b": "1", "imm-trans-b": "0"}
    signature = record.signatures[1] if isinstance(record, WarpgroupInstruction) else record.signature
    named = printed(signature, lambda name: f"%{numbers[name]}" if name in numbers else words[name])
    fences = ("wgmma.fence.sync.aligned; ", "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;")
    before, after = fences if of_warpgroup else ("", "")
    of_b = "u64 b" if of_warpgroup else "const FragmentB::Word (&b)[FragmentB::registers]"
    parameters = ("const FragmentA::Word (&a)[FragmentA::registers]", of_b,
                  "const FragmentC::Word (&c)[FragmentC::registers]", "FragmentD::Word (&d)[FragmentD::registers]",
                  "u32 metadata")  # fmt: skip
    return "\n".join([
        f"__device__ __forceinline__ void issue({', '.join(parameters)}) {{",
        f'  asm volatile("{before}{record} {named}; {after}"', f"    : {', '.join(results)}",
        f'    : {", ".join(operands)}', '    : "memory");', "}",
    ])  # fmt: skip
