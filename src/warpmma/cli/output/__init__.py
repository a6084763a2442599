"""Where commands write: streams, terminals, files."""
