"""Instances of templates by their names in C++, and entries by the names that people call them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .mangled_names import function_named, meant, unmangled


def instance(name: str) -> str:
    """Return an instance's name in C++, with its arguments; "" for what is none, or is not read.

    Examples
    --------
    >>> instance("_Z5scaleIfLi4EEvPT_S0_j"), instance("_ZN3bar4tmplINS_1XEPKfLb1EEEvPT_"), instance("_Z5saxpyifPfS_")
    ('scale<float, 4>', 'bar::tmpl<bar::X, const float*, true>', '')
    """
    found = function_named(name)
    return found.name if found is not None and found.name.endswith(">") else ""


def plain_instance(name: str) -> str:
    """Write a name as another of the same instance would be: without blanks, and suffixes of numbers.

    Examples
    --------
    >>> plain_instance("scale<unsigned int, 4u>") == plain_instance("scale<unsigned,4>")
    True
    """
    name = re.sub(r"\bunsigned int\b", "unsigned", re.sub(r"(?<=\d)[uUlL]+", "", name))
    return re.sub(r"\s", "", name)


def source_name(name: str) -> str:
    """Return the name in the source: with the arguments of a template; a name that is not mangled is its own."""
    return instance(name) or unmangled(name)


def entries_meant(name: str, entries: Iterable[str]) -> list[str]:
    """List the entries that a name in the source means: of a template without arguments, all of its instances.

    Examples
    --------
    >>> entries_meant("tmpl<float>", ["_ZN3bar4tmplIfEEvPT_", "_ZN3bar4tmplIdEEvPT_", "_Z5saxpyifPfS_"])
    ['_ZN3bar4tmplIfEEvPT_']
    """
    if "<" not in name:
        return meant(name, entries)
    return [x for x in entries if (y := instance(x)) and f"::{plain_instance(y)}".endswith(f"::{plain_instance(name)}")]
