"""A fuzz test of the whole public surface: what the calls are made of, and what each may end in.

`surface` walks the package and names every public callable; `entries` and the tables beside it say how a legal call of
each is made; `hostile`, `arrays` and `bending` replace some of its arguments by worse ones; `trial` makes one call and
judges how it ended. `tests/house/test_fuzz.py` makes some thousands of calls, `python -m tests.fuzzing` as many as
one likes.
"""
