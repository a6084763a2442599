"""What people write for an instruction: mnemonics, words, names from CUDA C++ and from machine code."""

from .finding import find
from .instruction_words import Named, every_fitting, named, qualifiers, words_of
from .mnemonic_words import STAND_FOR, TYPES, VOCABULARY, fragment_test, has_place, type_named
from .mnemonics import check_target, parse_warpgroup
from .name_meanings import explained
from .parsing import FragmentHolder, parse, parse_any, parse_holder, plainest
