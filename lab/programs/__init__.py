"""PTX programs that a GPU has run, with their launches and results; and random programs."""
