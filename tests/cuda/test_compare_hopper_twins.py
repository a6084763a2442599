"""The Hopper examples and their twins in CUDA C++: bits, an H100's too, and mistakes in the twins."""

from __future__ import annotations

import json
import subprocess
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import needs

import warpmma as wm
from lab.compare.hopper_twins import CASES, EXAMPLES, RECORDED, job, recorded
from lab.gpu.tensor_jobs import digest, read, run, write
from warpmma.cuda import nvrtc
from warpmma.machine import HazardError

hopper: Any = import_module("hopper")
MODULES: dict[str, Any] = {name: import_module(name) for name in EXAMPLES}
NVRTC = pytest.mark.skipif(bool(nvrtc.why_no_nvrtc()), reason=nvrtc.why_no_nvrtc())


@pytest.mark.parametrize("name", EXAMPLES)
def test_main(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    MODULES[name].main(twin=False)
    assert capsys.readouterr().out.startswith("equal")


@pytest.mark.alike(3)
@pytest.mark.parametrize("name", [x for x in CASES if "1024x" not in x and "512x" not in x])
def test_kernels_in_python_give_what_an_h100_gave(name: str) -> None:
    """`strict` is what is always so in Python: no report."""
    of, case = CASES[name]
    found, launch = hopper.simulate(MODULES[of].call(case))
    assert digest(found) == recorded()[name]
    assert not launch.hazards


@NVRTC
@pytest.mark.alike(5)
@pytest.mark.parametrize("name", CASES)
def test_twins_give_what_an_h100_gave(name: str) -> None:
    of, case = CASES[name]
    found, launch = hopper.simulate_twin(MODULES[of].call(case), hazards="strict", seed=case.seed % 3)
    assert digest(found) == recorded()[name]
    assert not launch.hazards and not launch.harmless


def test_recordings_are_of_an_h100() -> None:
    about = json.loads(RECORDED.read_text())
    assert about["driver"] and "H100" in about["gpu"]
    assert list(about["outputs"]) == list(CASES)


def test_promotion_is_noticed() -> None:
    """The inputs tell sums that are promoted from those of the tensor cores alone, and from others."""
    fp8 = MODULES["hopper_fp8"]
    case = fp8.CASES[3]
    a, b, _ = fp8.call(case).arrays
    for every in (None, 64, 256):
        other = wm.matmul(a, b.T, instruction=fp8.WGMMA, target=hopper.TARGET, promote_every=every)
        assert not np.array_equal(other, fp8.expected(case))


def test_attention_is_that_of_f64() -> None:
    attention = MODULES["hopper_attention"]
    for case in attention.CASES[:2]:
        found, _ = hopper.simulate(attention.call(case))
        assert abs(found - attention.exact(case)).max() < 2e-3


@needs("nvcc")
@pytest.mark.parametrize("name", EXAMPLES)
def test_twins_compile_without_warnings(name: str, tmp_path: Path) -> None:
    """Nor does ptxas inject a wait or a fence that is missing, or serialise products: C7510 to C7519."""
    source = Path(hopper.__file__).parent / "cuda" / f"{name}.cu"
    flags = ["-cubin", "-arch=sm_90a", "-Xptxas=-v", "-Xcompiler=-Wall,-Wextra", "--Werror=all-warnings"]
    done = subprocess.run(["nvcc", *flags, "-o", tmp_path / "x.cubin", source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "0 bytes spill" in done.stderr and "(C75" not in done.stderr


class NoGpu:
    """A driver that notes launches, and writes 7 to where the last tensor map says the output is."""

    def __init__(self) -> None:
        self.memory: dict[int, Any] = {}
        self.launched: list[Any] = []

    def place(self, array: Any) -> int:
        address = 0x7F0000000000 + (len(self.memory) << 24)
        self.memory[address] = array.copy()
        return address

    def put(self, address: int, array: Any) -> None:
        self.memory[address] = array.copy()

    def fetch(self, address: int, like: Any) -> Any:
        return self.memory[address].copy()

    def free(self, address: int) -> None:
        assert address in self.memory

    def synchronise(self, seconds: float) -> None: ...

    def launch(self, function: object, grid: Any, block: Any, arguments: list[bytes], shared: int) -> None:
        self.launched.append((grid, block, arguments, shared))
        maps = [x for x in arguments if len(x) == 128]
        self.memory[int.from_bytes(maps[-1][:8], "little")][:] = 7


def test_launches_for_a_gpu(tmp_path: Path) -> None:
    """They are written, read and run, with tensor maps of where the arrays are there."""
    name = "hopper_attention 300x64 2"
    made, inputs = job(name, "code")
    write(tmp_path / "jobs.npz", [made], inputs)
    (found,), arrays = read(tmp_path / "jobs.npz")
    driver = NoGpu()
    outputs = run(driver, None, found, arrays, 3)  # type: ignore[arg-type]
    assert [x.shape for x in outputs] == [(300, 64)] * 3 and all((x.view(np.uint16) == 0x0707).all() for x in outputs)
    grid, block, arguments, shared = driver.launched[0]
    call = MODULES["hopper_attention"].call(CASES[name][1])
    assert (*grid, *block, shared) == (*call.grid, hopper.THREADS, call.shared)
    assert [len(x) for x in arguments] == [128] * 4 + [4, 4]
    addresses = [int.from_bytes(x[:8], "little") for x in arguments[:4]]
    assert all(driver.memory[at].tobytes() == x.tobytes() for at, x in zip(addresses, inputs, strict=False))
    assert wm.TensorMap.from_bytes(arguments[0]).shape == (300, 64)


MISTAKES = [  # in which twin, what becomes what, the kind, and what is said
    ("hopper_product", "if (turn > 0) wait(&shared.empty[s], (turn - 1) % 2);", "", "barrier", "more arrivals"),
    ("hopper_product", "wait(&shared.full[s], turn % 2);", "", "race|pending|poison", "asynchronous operation"),
    ("hopper_product", "wgmma_commit();", "", "pending", "may still read it"),
    ("hopper_product", "wgmma_wait<1>();", "wgmma_wait<2>();", "pending", "may still read it"),
    ("hopper_product", "wgmma_wait<0>(sums);", "", "pending", "without waiting for its product"),
    ("hopper_product", "async_fence();", "", "proxy", "no fence.proxy.async"),
    ("hopper_product", "warpgroup_sync(1 + consumer);", "", "race", "wrote it"),
    ("hopper_product", "warpgroup_sync(1 + consumer);", "warpgroup_sync(1);", "barrier", "more than 128 threads"),
    ("hopper_product", "+ sizeof(shared.b[s])", "", "race|pending|barrier", "."),
    ("hopper_product", "Consumers * Warpgroup / 32);", "Consumers);", "deadlock|barrier", "."),
    ("hopper_product", "if (step > 0 && lane == 0)", "if (step > 0 && thread == 0)", "deadlock", "."),
    ("hopper_product", "fewer_registers<40>();", "if (lane < thread) fewer_registers<40>();", "divergent", "."),
    ("hopper_product", "= warpgroup - 1;", "= threadIdx.x / 64 % 2;", "divergent", "descriptors of A"),
    ("hopper_cluster", "Blocks * Consumers * Warpgroup / 32", "Consumers * Warpgroup / 32", "deadlock|barrier", "."),
    ("hopper_cluster", "lane < Blocks) arrive_at(", "lane == 0) arrive_at(", "deadlock", "."),
    ("hopper_cluster", "(1 << Blocks) - 1", "1 << rank", "deadlock", "."),
    ("hopper_cluster", "cluster_sync();  // the other block's", "__syncthreads();  // the", "race|barrier", "."),
    ("hopper_cluster", "cluster_sync();  // no block ends", "// no block ends", "race", "no thread of block .* waits"),
    ("hopper_fp8", "wgmma_wait<0>(products);", "wgmma_wait<1>(products);", "pending", "."),
    ("hopper_fp8", "i > 0);", "true);", "poison", "never wrote"),
    ("hopper_attention", "  wgmma_wait<0>(scores);\n", "", "pending", "belongs to D of the product"),
    ("hopper_attention", "  wgmma_wait<0>(out);\n", "", "pending", "may still read it"),
    ("hopper_attention", "  wait(&shared.q_full, 0);\n", "", "race|pending|poison", "."),
]


@NVRTC
@pytest.mark.alike(2)
@pytest.mark.parametrize(("name", "right", "wrong", "kinds", "says"), MISTAKES)
def test_mistakes_are_reported(name: str, right: str, wrong: str, kinds: str, says: str) -> None:
    module = MODULES[name]
    text = (Path(module.__file__).parent / "cuda" / f"{name}.cu").read_text()
    assert text.count(right) == 1
    case = module.CASES[1 if name == "hopper_attention" else 2]
    if name == "hopper_fp8":
        case = module.Case(128, 128, 768, 7)
    with pytest.raises(HazardError, match=says) as error:
        hopper.simulate_twin(module.call(case), text.replace(right, wrong))
    assert error.value.hazard.kind in kinds.split("|"), error.value
