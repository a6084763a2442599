"""What a GPU does where PTX leaves it open."""
