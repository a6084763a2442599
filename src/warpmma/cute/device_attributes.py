"""Attributes of a simulated GPU, as CUDA numbers them.

Its multiprocessors are as many as `%nsmid` says. Clocks, caches and widths of buses are not simulated, and have no
number.
"""

from __future__ import annotations

from ..errors import UnsupportedError
from ..isa import TARGETS
from ..machine import MULTIPROCESSORS
from ..registers import LANES
from .active_gpu import ActiveGpu


def attributes(session: ActiveGpu) -> dict[int, int]:
    """Return the answers by the number of CUDA's `CUdevice_attribute`."""
    target = TARGETS[session.target]
    (major, minor), (x, y, z), (grid_x, grid_y, grid_z) = target.capability, target.block, target.grid
    return {
        1: target.threads_per_block, 2: x, 3: y, 4: z, 5: grid_x, 6: grid_y, 7: grid_z,
        8: target.static_shared, 10: LANES, 12: target.registers_per_block, 16: MULTIPROCESSORS,
        39: target.threads_per_sm, 75: major, 76: minor, 81: target.shared_per_sm, 82: target.registers_per_block,
        95: 1, 97: target.shared_per_block, 120: int(target.cluster > 1),
    }  # fmt: skip


def attribute_of(session: ActiveGpu, number: int) -> int:
    """Return one of them; an error if it is not among them."""
    known = attributes(session)
    if number not in known:
        raise UnsupportedError(
            f"attribute {number} of a device is not answered by a simulated GPU; answered are {sorted(known)}"
        )
    return known[number]
