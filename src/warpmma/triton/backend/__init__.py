"""What Triton finds by the entry point "triton.backends", and imports whenever it is imported itself.

It answers only where WARPMMA_TRITON is set; nothing of warpmma is loaded before.
"""
