"""Malformed and hostile PTX texts, and their outcomes."""
