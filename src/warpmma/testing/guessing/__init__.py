"""Guesses of the mistake behind wrong bits: a table of mistakes, tried by executing the instruction."""

from .copy_guesses import guess_copy
from .guesses import guess, guess_fragment, target_of
from .launch_guesses import LaunchGuess, guess_launch
from .searching import Guesses

__all__ = ["Guesses", "LaunchGuess", "guess", "guess_copy", "guess_fragment", "guess_launch", "target_of"]
