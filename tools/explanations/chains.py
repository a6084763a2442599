from collections.abc import Iterator

from .recipes import Faults


def chain_faults(count: int, seed: int) -> Iterator[Faults]:
    yield Faults()
