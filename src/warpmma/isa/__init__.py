"""What exists: targets, a record each with generation and limits; mnemonics and their rows."""

from .targets import TARGETS, Target

__all__ = ["TARGETS", "Target"]
