"""The package's version, where every room may read it."""

__version__ = "0.3.0"
