"""What only developers of warpmma run: commands, and the modules that they share.

Run each as a module from the root of the repository, for example `python -m lab.check.lookups --help`. The wheel has
none of this, and the package never imports it.

* `check`: compares parts of warpmma with each other; needs no GPU.
* `compare`: compares warpmma with a GPU, ptxas or Triton.
* `record`: records what a GPU computes, for the tests (`tests/data`).
* `measure`: finds out what a GPU does where PTX leaves it open, and what a launch costs.
* `solve`: solves the tables of the special-function unit from a GPU's results.
* `accuracy`: measures the errors of the approximate functions.
* `mutate`: makes kernels and recipes wrong, and counts the mistakes that the simulator or operands find.
* `fuzz`: parses and runs malformed and hostile PTX.
* `release`: builds wheels and the source distribution, and tries them.
* `draw`: draws the pictures of the documentation, and builds its site.

Shared by them and by tests:

* `gpu`: launches on this machine's GPU.
* `generators`: operands that are hard to compute with.
* `programs`, `triton_programs`: recorded programs, and random ones.
* `contraction`: kernels, and machine code that is run on formulas.
"""
