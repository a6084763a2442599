"""Launches on this machine's GPU: PTX by the driver alone, kernels by ptxas and CuPy; and the jobs that use them.

`driver` needs no compiler and no package except NumPy. `OperationGpu` and `KernelGpu` need `ptxas` on the PATH and
CuPy; nothing else here does.
"""
