"""Kernels that have a hazard, by subject: each at its line marked `# here`, and in the table of its file."""
