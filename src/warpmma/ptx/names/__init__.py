"""Names of C++ in PTX: mangled names and template instances."""

from .mangled_names import function_named, variable_named
from .template_names import entries_meant, source_name
