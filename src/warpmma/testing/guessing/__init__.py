"""Guesses of the mistake behind wrong bits: a table of mistakes, tried by executing the instruction."""

from .copy_guesses import guess_copy
from .guesses import guess, guess_fragment, target_of
from .searching import Guesses

__all__ = ["Guesses", "guess", "guess_copy", "guess_fragment", "target_of"]
