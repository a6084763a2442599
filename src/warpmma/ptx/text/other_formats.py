"""What is given in place of PTX text, and how PTX is made of it."""

from __future__ import annotations

import re

_MAKE = "PTX text is what `nvcc -ptx -arch=sm_80 -lineinfo FILE.cu` writes"

_BEGINNINGS = {
    b"\x7fELF": f"is an ELF file (a cubin, an object or a program), which is machine code; {_MAKE}, and "
    "`cuobjdump -ptx` what a program holds of it",
    b"P\xedU\xba": f"is a fatbin; {_MAKE}, and `cuobjdump -ptx` what a fatbin holds of it",
    b"MZ": f"is a Windows program; {_MAKE}, and `cuobjdump -ptx` what a program holds of it",
    b"BC\xc0\xde": f"is LLVM bitcode; {_MAKE}",
    b"\xff\xfe": "is UTF-16, as a shell of Windows redirects text; expected UTF-8: let `nvcc -o` write the file",
    b"\xfe\xff": "is UTF-16; expected UTF-8",
}
"""First bytes of files."""

_LANGUAGES = (
    (r"__global__|__device__|^[ \t]*#[ \t]*include\b", f"is CUDA C++; {_MAKE}, and `warpmma.cuda.load` compiles it"),
    (r"^target (triple|datalayout) *=", f"is LLVM IR; {_MAKE}, and `llc -march=nvptx64` what LLVM makes"),
    (r"\btt\.func\b|\bttg?\.", 'is Triton\'s IR; its PTX is `compiled.asm["ptx"]`'),
    (r"^(import|from) \w+|^def \w+\(", "is Python; Triton has PTX in `compiled.asm['ptx']`, Numba in `inspect_asm()`"),
    (r"/\*[0-9a-f]{4,}\*/", f"is machine code as text; {_MAKE}"),
)
"""What stands in texts of other languages."""


def no_text(data: bytes) -> str:
    r"""Say what bytes are that are no text, or "".

    Examples
    --------
    >>> no_text(b"BC\xc0\xde")
    'is LLVM bitcode; PTX text is what `nvcc -ptx -arch=sm_80 -lineinfo FILE.cu` writes'
    """
    return next((says for beginning, says in _BEGINNINGS.items() if data.startswith(beginning)), "")


def other_language(text: str) -> str:
    """Say what a text is that has no `.version`, or "".

    Examples
    --------
    >>> other_language("__global__ void k() {}").partition("; ")[0]
    'is CUDA C++'
    """
    if ".version" in text:
        return ""
    if not text.strip():
        return f"is empty, without '.version'; {_MAKE}"
    return next((says for pattern, says in _LANGUAGES if re.search(pattern, text, re.MULTILINE)), "")
