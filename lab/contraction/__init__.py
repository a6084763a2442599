"""What ptxas fuses, compared with what `warpmma.ptx` fuses: random kernels, machine code, and what both compute."""
