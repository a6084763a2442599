"""Arguments of commands: words, operands, matrices in files."""
