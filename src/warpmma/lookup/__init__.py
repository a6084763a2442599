"""Which lane holds an element, and which element a lane holds: of fragments, metadata, scales and accumulators.

`where` finds an element's place and `what` what is there; `layout_table` lists a whole operand, and `read_word` says
what given bits mean. None of it needs NumPy.
"""

from ..layouts import Cell, FragmentTable
from .finding_places import layout_table, what, where
from .operands import REGISTER_OPERANDS, RegisterOperand, ids_of, operand_layout
from .reading_words import WordPart, read_word

__all__ = [
    "REGISTER_OPERANDS", "Cell", "FragmentTable", "RegisterOperand", "WordPart", "ids_of", "layout_table",
    "operand_layout", "read_word", "what", "where",
]  # fmt: skip
