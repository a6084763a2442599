"""Output of commands: streams, terminals, files."""
