"""What runs front ends that this environment need not have: PyTorch, Triton, the CuTe DSL."""

from __future__ import annotations

__all__ = ["INNER"]

INNER: dict[str, str] = {
    **dict.fromkeys(
        (
            f"warpmma.torch:{x}"
            for x in (
                "Arithmetic",
                "Arithmetic.__enter__",
                "Arithmetic.__exit__",
                "ProductReport",
                "ProductReport.__str__",
                "ProductReport.instructions",
                "ReplacedProduct",
                "ReplacedProduct.__str__",
                "ReplacedProduct.evidence",
                "arithmetic",
                "matmul",
                "operators",
                "compile",
                "CompiledKernel",
                "CompiledKernel.with_launch",
                *(f"CompiledModel{x}" for x in ("", ".__call__", ".__getattr__", ".__repr__", ".launches")),
                *(
                    f"CompileReport{x}"
                    for x in ("", ".__str__", ".add", ".hazards", ".instructions", ".kernels", ".launches", ".seconds")
                ),
            )
        ),
        "for those who have PyTorch, which this environment need not have: tests/pytorch",
    ),
    **dict.fromkeys(
        (
            f"warpmma.triton:{x}"
            for x in (
                *(f"ActiveDevice{x}" for x in ("", ".__repr__", ".capability", ".device_of", ".instructions")),
                "current",
                "KernelLaunch",
                "TritonDevice",
                "TritonDevice.__enter__",
                "TritonDevice.__exit__",
                "TritonDevice.__repr__",
                "TritonDevice.device_of",
                "TritonDevice.instructions",
                "TritonDevice.map",
                "device",
                "install",
                "install_described",
                "uninstall",
            )
        ),
        "for those who have Triton, which this environment need not have: tests/triton",
    ),
    **dict.fromkeys(
        (
            "warpmma.testing:Gpu.cute",
            *(
                f"warpmma.cute:{x}"
                for x in (
                    "CuteDevice",
                    "CuteDevice.__enter__",
                    "CuteDevice.__exit__",
                    "CuteDevice.__repr__",
                    "CuteDevice.instructions",
                    "CuteDevice.launch",
                    "CuteDevice.map",
                    "CuteLaunch",
                    "CuteLaunch.ptx",
                    "device",
                )
            ),
        ),
        "for those who have the CuTe DSL, which this environment need not have: tests/cute",
    ),
}
