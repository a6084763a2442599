"""Which lane holds an element, and which element a lane holds: of fragments, metadata, scales and addresses of rows.

`where` finds an element's place and `what` what is there; `layout_table` lists a whole operand, and `read_word` says
what given bits mean. None of these needs NumPy. Of operands of `wgmma` in shared memory, `shared_reading` says what
a descriptor reads, and `diagnose_descriptor` which of its fields is wrong.
"""

from typing import TYPE_CHECKING

from .._lazy import on_demand as _on_demand

if TYPE_CHECKING:  # what `_ORIGINS` says
    from ..layouts import Cell, FragmentTable
    from .descriptor_diagnosis import (
        FIELDS,
        DescriptorDiagnosis,
        DescriptorMistake,
        Field,
        descriptor_mistake,
        diagnose_descriptor,
    )
    from .finding_places import layout_table, what, where
    from .reading_words import WarpWords, WordPart, read_word, read_words
    from .register_operands import REGISTER_OPERANDS, RegisterOperand, ids_of, layout_known, operand_layout
    from .shared_readings import SHARED_OPERANDS, SharedReading, shared_reading

__all__ = [
    "FIELDS",
    "REGISTER_OPERANDS",
    "SHARED_OPERANDS",
    "Cell",
    "DescriptorDiagnosis",
    "DescriptorMistake",
    "Field",
    "FragmentTable",
    "RegisterOperand",
    "SharedReading",
    "WarpWords",
    "WordPart",
    "descriptor_mistake",
    "diagnose_descriptor",
    "ids_of",
    "layout_known",
    "layout_table",
    "operand_layout",
    "read_word",
    "read_words",
    "shared_reading",
    "what",
    "where",
]

_ORIGINS = {
    "..layouts": ("Cell", "FragmentTable"),
    ".finding_places": ("layout_table", "what", "where"),
    ".register_operands": ("REGISTER_OPERANDS", "RegisterOperand", "ids_of", "layout_known", "operand_layout"),
    ".descriptor_diagnosis": (
        "FIELDS",
        "DescriptorDiagnosis",
        "DescriptorMistake",
        "Field",
        "descriptor_mistake",
        "diagnose_descriptor",
    ),
    ".shared_readings": ("SHARED_OPERANDS", "SharedReading", "shared_reading"),
    ".reading_words": ("WarpWords", "WordPart", "read_word", "read_words"),
}

if not TYPE_CHECKING:  # to which every name would be one
    __getattr__, __dir__ = _on_demand(__name__, _ORIGINS)
