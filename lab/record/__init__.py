"""Recordings of what a GPU computes."""
