"""The instructions of `mma`, `wgmma`, `wmma`, `ldmatrix` and the like: rows, and the records derived from them."""

from .families import FAMILIES, Family
from .fragment_record import MEASURED_ON, FragmentForm, FragmentInstruction
from .fragment_table import FRAGMENT_FORMS, FRAGMENT_OPCODES, fragment_instructions, parse_fragments
from .matrix_instructions import MatrixInstruction
from .matrix_moves import MATRIX_MOVES, MATRIX_TRANSPOSE, FragmentMove, FragmentTranspose
from .mma import MMA, MMA_TABLE, Instruction, instructions
from .wgmma import WGMMA, WGMMA_TABLE, WarpgroupFamily, WarpgroupInstruction, warpgroup_instructions
from .wmma_instructions import WMMA_MOVES, WMMA_PRODUCTS, WmmaProduct, WmmaTransfer
