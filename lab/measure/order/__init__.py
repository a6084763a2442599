"""Measure the asynchronous order of a GPU of sm_90a: `python -m lab.measure.order --help`.

Each program of CUDA C++ here is an experiment; its comment says what it does and counts. `cells` lists what is
compiled of it and run: which write, which fence, which signal. Most kernels are wrong on purpose, and look for how
often that shows; writers store to one bank before, so that their writes wait in a queue.
"""
