"""What exists: targets, mnemonics and their rows."""
