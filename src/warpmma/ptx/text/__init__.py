"""Parsing: from PTX text to records, each with its line and column."""

from .directives import cluster_problem, cluster_size, registers_at_launch
from .module_text import read
from .numbers import number
from .operand_text import declared
from .syntax import (
    BYTES,
    AddressOf,
    Declaration,
    Element,
    Function,
    Immediate,
    Label,
    Mnemonic,
    Module,
    Negation,
    Operand,
    Place,
    Position,
    RegisterRange,
    Selection,
    Statement,
    Symbol,
    Variable,
    VectorOf,
    bytes_of,
    words_of,
)
