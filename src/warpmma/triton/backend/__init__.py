"""The entry point "triton.backends", which Triton imports whenever it is imported itself.

It answers only where WARPMMA_TRITON is set; nothing of warpmma is loaded before.
"""

from contextlib import suppress

with suppress(ImportError):  # before the modules here, which Triton would find half imported
    import triton as triton
