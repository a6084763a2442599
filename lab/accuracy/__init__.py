"""Errors of the approximate functions over all inputs: forms, measurements, facts, tables, figures."""
