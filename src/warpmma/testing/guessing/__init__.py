"""Guesses of the mistake behind wrong bits: a table of mistakes, tried by executing the instruction."""

from .guesses import Guesses, guess, guess_fragment, target_of

__all__ = ["Guesses", "guess", "guess_fragment", "target_of"]
