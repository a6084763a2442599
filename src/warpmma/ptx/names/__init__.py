"""Names of C++ in PTX: mangled names and template instances."""

from .mangled_names import entries_meant, function_named, source_name, variable_named
