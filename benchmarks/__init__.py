"""Benchmarks: `pytest benchmarks` measures, prints a table, and writes a plot and the raw numbers to `results/`."""
