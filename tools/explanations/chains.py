"""Chains of whole products, explained and compared with `matmul`."""

from collections.abc import Iterator

from .recipes import Faults


def chain_faults(count: int, seed: int) -> Iterator[Faults]:
    """Draw products."""
    yield Faults()
