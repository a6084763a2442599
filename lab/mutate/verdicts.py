"""What becomes of a mutant: it is found, its output is wrong, it is harmless, or nobody notices it.

1. A hazard, an error of the package or a loop without end has found it.
2. An error of Python in the kernel's own lines: the mutant is no kernel ("refused by Python").
3. Any other error comes out of the package: "broken", which is a fault of the package.
4. Arrays that differ in a bit from what the kernel leaves in them: "wrong".
5. Else it is harmless, if `harmless.py` says why; if not, it is unnoticed.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import warpmma
from warpmma.errors import WarpmmaError
from warpmma.kernel import HazardError

from .harmless import reason
from .subjects import EXAMPLES, EndlessError, Mutant, Subject

__all__ = ["BAD", "Verdict", "judge", "original"]

BAD = ("unnoticed", "broken")
_PACKAGE = str(Path(warpmma.__file__).parent)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What became of a mutant.

    Attributes
    ----------
    subject, mutation, line : str
    what : str
        "found", "refused by Python", "broken", "wrong", "harmless" or "unnoticed".
    why : str
        The hazard's kind, "error" or "endless"; for harmless ones the argument.
    detail : str
        What was reported.
    """

    subject: str
    mutation: str
    line: str
    what: str
    why: str = ""
    detail: str = ""


def _bits(arrays: Sequence[Any]) -> list[bytes]:
    return [x.tobytes() for x in arrays]


def _launched(subject: Subject, mutant: Mutant | None) -> list[bytes]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return _bits(subject.launch(mutant, hazards="error", threads=1))


@cache
def original(subject: Subject) -> list[bytes] | str:
    """Return what the kernel leaves in its arrays, or, of one that does not run, why."""
    try:
        return _launched(subject, None)
    except Exception as error:  # whatever it is, nothing can be said of its mutants
        return f"{type(error).__name__}: {error}"


def judge(mutant: Mutant) -> Verdict:
    """Run a mutant, whose kernel must run itself."""
    what, why, detail = _tried(mutant)
    if what == "same":
        argument = reason(mutant.subject.name, mutant.name)
        what, why = ("harmless", argument) if argument else ("unnoticed", "")
    return Verdict(
        subject=mutant.subject.name, mutation=mutant.name, line=mutant.line, what=what, why=why, detail=detail
    )


def _tried(mutant: Mutant) -> tuple[str, str, str]:
    try:
        bits = _launched(mutant.subject, mutant)
    except HazardError as error:
        return "found", error.hazard.kind, str(error)
    except WarpmmaError as error:
        return "found", "error", str(error)
    except EndlessError:
        return "found", "endless", ""
    except Exception as error:  # whatever comes out of the package is what is looked for
        return _refused(error), type(error).__name__, str(error)
    return ("same", "", "") if bits == original(mutant.subject) else ("wrong", "", "")


def _refused(error: Exception) -> str:
    """Tell by the innermost line, of the package or of a kernel, whose error it is."""
    files = [frame.filename for frame in reversed(traceback.extract_tb(error.__traceback__))]
    last = next((file for file in files if file.startswith((_PACKAGE, str(EXAMPLES)))), "")
    return "refused by Python" if last.startswith(str(EXAMPLES)) else "broken"
