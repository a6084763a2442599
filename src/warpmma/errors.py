"""Errors that users can meet: each is a `ValueError` and says what came, what was expected and what is nearest."""

__all__ = [
    "ArchiveError",
    "MetadataError",
    "MnemonicError",
    "OperandError",
    "RegisterError",
    "ScaleError",
    "TargetError",
    "UnsupportedError",
    "WarpmmaError",
]


class WarpmmaError(ValueError):
    """Base of every error that warpmma raises on bad input."""


class MnemonicError(WarpmmaError):
    """A mnemonic that cannot be read, or that names no instruction."""


class TargetError(WarpmmaError):
    """An unknown target, or an instruction that its target does not have."""


class OperandError(WarpmmaError):
    """A matrix or a fragment with the wrong shape, dtype or values."""


class RegisterError(WarpmmaError):
    """A register that does not exist, has another width, or was never written."""


class MetadataError(WarpmmaError):
    """A sparse matrix that breaks its pattern, or metadata or a selector that PTX leaves undefined."""


class ScaleError(WarpmmaError):
    """Block scales, or their byte-id or thread-id, that an instruction does not take."""


class ArchiveError(WarpmmaError):
    """A file of recorded registers that cannot be used."""


class UnsupportedError(WarpmmaError):
    """A legal request that this version of warpmma does not answer."""
