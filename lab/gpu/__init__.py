"""Launches on this machine's GPU: of texts by the driver alone, of kernels by ptxas and CuPy, and what they compare.

`driver` needs no compiler and no package but NumPy. `InstructionGpu`, `OperationGpu`, `MoveGpu` and `KernelGpu` need
`ptxas` on the PATH and CuPy; nothing else here does.
"""
