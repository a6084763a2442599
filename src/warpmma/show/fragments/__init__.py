"""Fragments in registers, as pictures and tables."""
