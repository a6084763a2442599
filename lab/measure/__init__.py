"""Measurements of what a GPU does where PTX leaves it undefined."""
