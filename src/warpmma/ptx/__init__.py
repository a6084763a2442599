"""Front end: PTX text."""
