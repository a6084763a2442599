"""PTX texts that are broken or mean harm, and what becomes of them."""
