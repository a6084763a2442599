"""For which targets Triton writes PTX, by the target whose bits are computed.

A driver assembles PTX for older targets, too: what Triton writes for sm_80 has sm_90's bits on sm_90. For sm_90 itself
`tl.dot` becomes `wgmma`, for sm_100 to sm_110 `tcgen05`, and descriptors become TMA from sm_90 on: none is simulated.
A kernel is compiled for the first target of its row that has all of its types: sm_80 has no e4m3, sm_89 has.
"""

from __future__ import annotations

from types import MappingProxyType

from ..errors import TargetError, shown
from ..isa import TARGETS, check_known

PTX_TARGETS = MappingProxyType({
    70: (70,), 72: (70,), 75: (75,), 80: (80,), 86: (86,), 87: (87,), 88: (86,), 89: (89,), 90: (80, 89),
    100: (80, 89), 103: (80, 89), 110: (80, 89), 120: (89,), 121: (89,),
})  # fmt: skip
"""Number of a target, and of those for which Triton writes, in order, unless `ptx_target` names one."""


def ptx_numbers(target: str, ptx_target: str | None) -> tuple[int, ...]:
    """Return the numbers of the targets that Triton compiles for: for the first that has all types of a kernel.

    Raises
    ------
    TargetError
        No such target, or a later one than the target whose bits are computed.

    Examples
    --------
    >>> ptx_numbers("sm_90", None), ptx_numbers("sm_90", "sm_89")
    ((80, 89), (89,))
    """
    check_known(target)
    mine = TARGETS[target].number
    if ptx_target is None:
        return PTX_TARGETS[mine]
    check_known(ptx_target)
    number = TARGETS[ptx_target].number
    if number > mine:
        raise TargetError(
            f"ptx_target is {shown(ptx_target)}, later than {target}, which does not run it; give an earlier one, or "
            f"none for sm_{PTX_TARGETS[mine][0]}"
        )
    return (number,)


def device_target(target: str, ptx: int) -> str:
    """Return the target of the simulated device: from sm_90 on Triton writes for sm_90a where it writes for sm_90.

    Examples
    --------
    >>> device_target("sm_90", 80), device_target("sm_90", 90)
    ('sm_90', 'sm_90a')
    """
    if ptx < 90:
        return target
    if ptx != TARGETS[target].number:
        raise TargetError(f"Triton writes sm_{ptx}a, which {target} does not run; give ptx_target='sm_80' or 'sm_89'")
    return f"sm_{ptx}a"
