"""Measurements of what a GPU does where PTX leaves it undefined, and of what a launch costs (`front_ends`)."""
