"""Programs in PTX that a GPU has run: their texts, their launches, and what came out; and random ones."""
