"""Names of GPUs and their targets, for messages about unknown targets.

No function accepts these names: a GPU's name does not say whether code was built for sm_90 or for sm_90a, which have
different instructions.

Sources: NVIDIA's lists of compute capabilities, developer.nvidia.com/cuda-gpus and cuda-legacy-gpus, November 2026.
H20, H800, A800, L20, the GTX 16 series, Titan RTX and the names of whole modules (Thor, Orin, Xavier) are not listed
there, but have the same chips as GPUs that are. That sm_101 became sm_110: PTX ISA 9.0, release notes.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from .._records import Shown
from ..errors import TargetError, nearest, shown
from .targets import TARGETS


@dataclass(frozen=True, kw_only=True)
class Gpus(Shown):
    """The GPUs of one target.

    Attributes
    ----------
    target : str
        Without suffix. Targets that have no `mma`, and so are not simulated, are listed too.
    names : tuple of str
        As NVIDIA writes them, without what does not distinguish targets (NVIDIA, GeForce, Tesla, memory, form factor).
        The best known comes first.
    suffixed : str
        What the target has with a suffix only.
    older : str
        Generation of a target that has no `mma`; otherwise `TARGETS` has it.
    """

    target: str
    names: tuple[str, ...]
    suffixed: str = ""
    older: str = ""

    @property
    def generation(self) -> str:
        """Name of the generation."""
        return self.older or TARGETS[self.target].generation

    @property
    def meaning(self) -> str:
        """The target in a sentence."""
        return f"{self.target} ({self.suffixed})" if self.suffixed else self.target


def _series(prefix: str, *numbers: int) -> tuple[str, ...]:
    return tuple(f"{prefix} {n}" for n in numbers)


def _kinds(number: int) -> str:
    return f"sm_{number}f or sm_{number}a for .kind::f8f6f4"


def _scales(number: int) -> str:
    return f"sm_{number}f or sm_{number}a for .kind and block scales"


GPUS: tuple[Gpus, ...] = (
    Gpus(target="sm_37", older="Kepler", names=("K80",)),
    Gpus(target="sm_52", older="Maxwell", names=("M40", "M60", *_series("GTX", 950, 960, 970, 980))),
    Gpus(target="sm_53", older="Maxwell", names=("Jetson Nano",)),
    Gpus(target="sm_60", older="Pascal", names=("P100", "GP100")),
    Gpus(
        target="sm_61", older="Pascal",
        names=("P40", "P4", *_series("GTX", 1050, 1060, 1070, 1080), "Titan X", "Titan Xp"),
    ),
    Gpus(target="sm_62", older="Pascal", names=("Jetson TX2",)),
    Gpus(target="sm_70", names=("V100", "Titan V", "GV100")),
    Gpus(target="sm_72", names=("Jetson Xavier", "Xavier")),
    Gpus(
        target="sm_75",
        names=(
            "T4", *_series("RTX", 2060, 2070, 2080), "Titan RTX", *_series("Quadro RTX", 3000, 4000, 5000, 6000, 8000),
            *_series("GTX", 1650, 1660), "T1000", "T600", "T400",
        ),
    ),
    Gpus(target="sm_80", names=("A100", "A30", "A800")),
    Gpus(
        target="sm_86",
        names=(
            "RTX 3090", *_series("RTX", 3050, 3060, 3070, 3080), "A10", "A40", "A16", "A2", "A10G",
            *(f"RTX A{n}" for n in (2000, 3000, 4000, 4500, 5000, 5500, 6000)),
        ),
    ),
    Gpus(target="sm_87", names=("Jetson Orin", "Orin")),
    Gpus(
        target="sm_89",
        names=(
            "RTX 4090", *_series("RTX", 4050, 4060, 4070, 4080), "L40S", "L40", "L4", "L20",
            *(f"RTX {n} Ada" for n in (6000, 5000, 4500, 4000, "4000 SFF", 2000)),
        ),
    ),
    Gpus(target="sm_90", names=("H100", "H200", "GH200", "H800", "H20"), suffixed="sm_90a for wgmma"),
    Gpus(target="sm_100", names=("B200", "GB200", "B100"), suffixed=_kinds(100)),
    Gpus(target="sm_103", names=("B300", "GB300"), suffixed=_kinds(103)),
    Gpus(target="sm_110", names=("Jetson Thor", "Thor", "Jetson T5000", "Jetson T4000"), suffixed=_kinds(110)),
    Gpus(
        target="sm_120",
        names=(
            "RTX 5090", *_series("RTX", 5050, 5060, 5070, 5080), *_series("RTX PRO", 6000, 5000, 4500, 4000, 2000),
        ),
        suffixed=_scales(120),
    ),
    Gpus(target="sm_121", names=("GB10", "DGX Spark"), suffixed=_scales(121)),
)  # fmt: skip
"""The GPUs of every target, oldest first."""

_RENAMED = {"101": "110"}
_OLDEST = 70
_NUMBER = re.compile(r"(?:sm|compute|cc|cuda|arch|compute capability)?[ _:-]*(\d{2,3}|\d{1,2}\.\d)([af]?)")
_LONGEST = 80  # characters of a name that are searched, and quoted in full
_NEAR = 0.7
_FEW = 4  # names that a message lists


def unknown(target: object, known: Collection[str]) -> str:
    """Write the message for an unknown target, with the known target that it probably means.

    Examples
    --------
    >>> print(unknown("NVIDIA H100 80GB HBM3", ["sm_80", "sm_90", "sm_90a"]))
    unknown target 'NVIDIA H100 80GB HBM3'; H100 is sm_90 (sm_90a for wgmma). Known are sm_80, sm_90, sm_90a
    >>> print(unknown("9.0", ["sm_80", "sm_90", "sm_90a"]))
    unknown target '9.0'; did you mean 'sm_90'? Known are sm_80, sm_90, sm_90a
    """
    if not isinstance(target, str):
        spelled = _spelled(_capability(target), known)
        meant = f". Did you mean {spelled!r}?" if spelled else ""
        return f"a target is a string such as 'sm_90'; got {shown(target)}{meant}"
    quoted = repr(target) if len(target) <= _LONGEST else f"{target[:_LONGEST]!r}..."
    return f"unknown target {quoted}{_explained(target[:_LONGEST], known)} Known are {', '.join(known)}"


def _explained(target: str, known: Collection[str]) -> str:
    """Format the text between the quoted name and the list of known targets."""
    if spelled := _spelled(target, known):
        return f"; did you mean {spelled!r}?"
    if meaning := _named(target) or _too_old(target):
        return f"; {meaning}."

    # Among equally near targets, prefer one with the same first digit.
    alike = sorted(known, key=lambda name: not target.lower().startswith(name[:4]))
    near = nearest(target.lower(), alike, _NEAR)
    return f"; did you mean {near!r}?" if near else "."


def _capability(target: object) -> str:
    """Write a number, or a pair such as PyTorch gives, as a compute capability; "" for anything else."""
    if type(target) in (int, float):
        return shown(target, str)
    if type(target) in (tuple, list) and [type(x) for x in target] == [int, int]:  # type: ignore[attr-defined]
        return ".".join(shown(x, str) for x in target)  # type: ignore[attr-defined]
    return ""


def _spelled(target: str, known: Collection[str]) -> str | None:
    """Return the known target that another spelling, such as 9.0 or compute_90, stands for."""
    match = _NUMBER.fullmatch(target.strip().lower())
    if match is None:
        return None
    number = match[1].replace(".", "")
    name = f"sm_{_RENAMED.get(number, number)}{match[2]}"
    return name if name in known else None


def _words(text: str) -> tuple[str, ...]:
    """Split a name into lower-case words, a series from its number: RTX4090 is rtx 4090."""
    return tuple(re.findall(r"[a-z0-9]+", re.sub(r"(rtx|gtx)(?=[a0-9])", r"\1 ", text.lower())))


def _within(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    """Whether the words of `part` occur in `whole`, consecutively."""
    return any(whole[i : i + len(part)] == part for i in range(len(whole) - len(part) + 1))


def _named(text: str) -> str | None:
    """Find the target of a GPU's name: the longest name in the text, or a few names that contain the text."""
    words = _words(text)
    if not words:
        return None
    names = {name: row for row in GPUS for name in row.names}
    if found := [name for name in names if _within(_words(name), words)]:
        name = max(found, key=lambda name: len(_words(name)))
        return _is(name, names[name])
    generations = dict.fromkeys(row.generation for row in GPUS)
    for name in sorted(generations, key=lambda name: -len(_words(name))):  # RTX Blackwell before Blackwell, which it is
        if _within(_words(name), words):
            return _is(name, *(row for row in GPUS if _within(_words(name), _words(row.generation))))
    found = [name for name in names if {*words} <= {*_words(name)}]
    return "; ".join(_is(name, names[name]) for name in found) if 0 < len(found) <= _FEW else None


def _is(name: str, *rows: Gpus) -> str:
    if len(rows) == 1:
        (row,) = rows
        lacks = f", which has no mma: the oldest target that has is sm_{_OLDEST}" * (int(row.target[3:]) < _OLDEST)
        return f"{name} is {row.meaning}{lacks}"
    each = [f"{row.target} ({row.names[0]})" for row in rows]
    return f"{name} is {', '.join(each[:-1])} or {each[-1]}"


def _too_old(target: str) -> str | None:
    match = _NUMBER.fullmatch(target.strip().lower())
    if match is None or not 20 <= int(match[1].replace(".", "")) < _OLDEST:
        return None
    return f"it has no mma: the oldest target that has is sm_{_OLDEST}"


def check_known(target: str) -> None:
    """Raise `TargetError` unless the target exists; the message explains names of GPUs and other spellings."""
    if not isinstance(target, str) or target not in TARGETS:
        raise TargetError(unknown(target, TARGETS))


def since(first: str) -> tuple[str, ...]:
    """List the targets that have what was introduced with a target; a final "f" or "a" requires that feature set.

    An unknown target is a `TargetError`.

    Examples
    --------
    >>> since("sm_120f")
    ('sm_120f', 'sm_120a', 'sm_121f', 'sm_121a')
    """
    check_known(first)
    return _since(first)


@cache
def _since(first: str) -> tuple[str, ...]:
    oldest = TARGETS[first]
    having = {"f": ("f", "a"), "a": ("a",)}.get(oldest.features, ("", "f", "a"))
    return tuple(t.name for t in TARGETS.values() if t.number >= oldest.number and t.features in having)
