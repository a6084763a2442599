"""A small transformer trained in bf16, fp8 and NVFP4, each with the sums of two GPUs or more.

All trainings start with the same weights and see the same bytes, of the source of Python's own library. They differ in
one thing: how a matrix product rounds its operands, and how a GPU adds the products. `RUNS` lists them;
`low_precision.py` has the products and the model. The run "f32" has operands in float32, and sums in float64.

The report has losses; where two runs' bits first differ; and of some steps, at the weights that "f32" has then, errors:

* of each run's gradient, relative to that of "f32": what format and sums change;
* relative to that of the same format with sums in float64: what the GPU's sums change in the whole pass;
* of the gradients of linear layers' weights, each relative to the same operands' with sums in float64: one product,
  whose k is the number of tokens.

Every run takes a step in turn, so Ctrl-C leaves a report of the steps that all have taken.
`python examples/train_low_precision.py --out study` takes two minutes on a CPU; `--device cuda` trains a larger model.
"""

from __future__ import annotations

import argparse
import hashlib
import platform
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from low_precision import Arithmetic, Transformer, loss_of
from low_precision_report import Report, tables

import warpmma as wm

SIZES = {  # of each device: the defaults of the options with these names
    "cpu": {"steps": 40, "width": 64, "layers": 2, "context": 64, "batch": 16},
    "cuda": {"steps": 300, "width": 512, "layers": 4, "context": 256, "batch": 8},
}
WGMMA = {"instruction": "wgmma", "promote_every": 0}
RUNS = {
    "f32": Arithmetic("f32"),
    "bf16 sm_80": Arithmetic("bf16", "sm_80"),
    "bf16 sm_90": Arithmetic("bf16", "sm_90"),
    "fp8 sm_89": Arithmetic("fp8", "sm_89"),  # sums keep 13 bits, as those of sm_90a's wgmma
    "fp8 sm_90a wgmma": Arithmetic("fp8", "sm_90a", WGMMA),
    "fp8 sm_90a wgmma promoted": Arithmetic("fp8", "sm_90a", {**WGMMA, "promote_every": 128}),
    "fp8 sm_120a": Arithmetic("fp8", "sm_120a"),  # sums keep all of f32's bits
    "NVFP4 sm_120a": Arithmetic("NVFP4", "sm_120a"),
    "NVFP4 sm_121a": Arithmetic("NVFP4", "sm_121a"),  # sm_120a's arithmetic, as far as is known: no bit may differ
    "NVFP4 in bf16 sm_90": Arithmetic("NVFP4 in bf16", "sm_90"),
}
PAIRS = [
    ("bf16 sm_80", "bf16 sm_90"),
    ("fp8 sm_90a wgmma", "fp8 sm_90a wgmma promoted"),
    ("fp8 sm_90a wgmma", "fp8 sm_89"),
    ("fp8 sm_90a wgmma promoted", "fp8 sm_120a"),
    ("NVFP4 sm_120a", "NVFP4 sm_121a"),
    ("NVFP4 sm_120a", "NVFP4 in bf16 sm_90"),
]


@dataclass(eq=False)
class Run:
    """One training: its model, and a checksum of every product of its last step while `traced`."""

    name: str
    model: Transformer
    optimizer: torch.optim.Optimizer
    traced: bool = True
    trace: list[tuple[str, Any]] = field(default_factory=list)

    def step(self, text: Any, rate: float) -> Any:
        """Train on a batch, and return the loss before it."""
        self.trace = []
        self.optimizer.param_groups[0]["lr"] = rate
        self.optimizer.zero_grad()
        loss = loss_of(self.model, text, RUNS[self.name], self.note)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def note(self, name: str, what: str, result: Any, _: Any) -> None:
        """Add a product's checksum, of its bits and their places, to the trace."""
        if self.traced:
            bits = result.contiguous().view(torch.int32).flatten().long()
            places = torch.arange(1, 2 * len(bits), 2, device=bits.device)
            self.trace.append((f"{name}: {what}", (bits * places).sum()))


class Study:
    """All trainings, a step of each in turn; `results` is what the report is made of."""

    def __init__(self, names: list[str], sizes: dict[str, int], *, probes: int, rate: float, device: str) -> None:
        self.sizes, self.rate, self.device = sizes, rate, device
        self.runs = []
        for name in names:
            model = Transformer(sizes["width"], sizes["layers"], sizes["context"]).to(device)
            self.runs.append(Run(name, model, torch.optim.Adam(model.parameters(), lr=rate)))
        text = b"".join(path.read_bytes() for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")))
        self.text, self.seed = torch.frombuffer(bytearray(text), dtype=torch.uint8), torch.Generator().manual_seed(1)
        self.probed = set(np.linspace(0, sizes["steps"] - 1, probes).astype(int).tolist())
        self.results: dict[str, Any] = {
            "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else "CPU",
            "versions": {"warpmma": wm.__version__, "torch": torch.__version__, "python": platform.python_version()},
            "text": {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()},
            "sizes": sizes,
            "rate": rate,
            "parameters": sum(x.numel() for x in self.runs[0].model.parameters()),
            "steps": 0,
            "losses": {name: [] for name in names},
            "errors": {name: [] for name in names},
            "pairs": [{"runs": pair, "first": None} for pair in PAIRS if set(pair) <= set(names)],
        }

    def train(self, done: Callable[[dict[str, Any]], None]) -> None:
        """Take all steps; `done` is called with the results after each."""
        steps, context = self.sizes["steps"], self.sizes["context"]
        warm = max(1, steps // 10)
        for step in range(steps):
            starts = torch.randint(len(self.text) - context, (self.sizes["batch"], 1), generator=self.seed)
            text = self.text[starts + torch.arange(context + 1)].long().to(self.device)
            if step in self.probed:
                self.probe(step, text)
            rate = self.rate * min((step + 1) / warm, (steps - step) / (steps - warm + 1))
            losses = torch.stack([run.step(text, rate) for run in self.runs]).tolist()
            self.compare(step)
            for run, loss in zip(self.runs, losses, strict=True):
                self.results["losses"][run.name].append(loss)
            self.results["steps"] = step + 1
            done(self.results)

    def probe(self, step: int, text: Any) -> None:
        """Compute the gradient at the first run's weights in every arithmetic; note its errors."""
        model = self.runs[0].model
        linear = tuple(f", {name}" for name in model.blocks[0])

        def gradient(how: Arithmetic) -> tuple[Any, float]:
            """Return all gradients, and the error of those of linear layers' weights by their sums."""
            errors: list[Any] = []

            def note(name: str, what: str, result: Any, exact: Any) -> None:
                if how.target and what == "gradient of the weights" and name.endswith(linear):
                    errors.append(away(result, exact()))

            each = torch.autograd.grad(loss_of(model, text, how, note), list(model.parameters()))
            return torch.cat([x.flatten() for x in each]), float(np.mean(np.square(errors or [0.0])) ** 0.5)

        forms = dict.fromkeys(["f32", *(RUNS[run.name].format for run in self.runs)])
        exact = {form: gradient(Arithmetic(form))[0] for form in forms}
        for run in self.runs[1:]:
            how = RUNS[run.name]
            mine, own = gradient(how)
            self.results["errors"][run.name].append(
                {"step": step + 1, "all": away(mine, exact["f32"]), "sums": away(mine, exact[how.format]), "own": own}
            )

    def compare(self, step: int) -> None:
        """Find the first product of this step whose bits differ, of pairs that had none before."""
        sums = {run.name: [(place, int(x)) for place, x in run.trace] for run in self.runs if run.traced}
        for pair in self.results["pairs"]:
            if pair["first"] is None:
                both = zip(*(sums[name] for name in pair["runs"]), strict=True)
                place = next((place for (place, mine), (_, other) in both if mine != other), None)
                pair["first"] = place and {"step": step + 1, "where": place}
        for run in self.runs:
            run.traced = any(run.name in pair["runs"] and not pair["first"] for pair in self.results["pairs"])


def away(x: Any, exact: Any) -> float:
    """Return the relative error, root mean square."""
    return float((x.double() - exact).norm() / exact.double().norm())


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Train, and write the report: tables, picture and numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", help="cpu, or cuda: your GPU computes the products")
    parser.add_argument("--runs", nargs="*", default=list(RUNS), choices=RUNS, metavar="RUN", help=", ".join(RUNS))
    for name, default in SIZES["cpu"].items():
        parser.add_argument(f"--{name}", type=int, help=f"{default}; {SIZES['cuda'][name]} on a GPU")
    parser.add_argument("--rate", type=float, help="largest learning rate; 0.016 / sqrt(width)")
    parser.add_argument("--probes", type=int, default=6, help="steps at which gradients are compared")
    parser.add_argument("--out", type=Path, help="folder of results.json, tables.md, losses.svg and losses.png")
    options = parser.parse_args(arguments)
    kind = options.device.partition(":")[0]
    sizes = {name: getattr(options, name) or default for name, default in SIZES[kind].items()}
    rate = options.rate or 0.016 / sizes["width"] ** 0.5
    if kind == "cpu":
        torch.set_num_threads(1)  # of tensors this small more threads wait for each other
    else:
        torch.use_deterministic_algorithms(True, warn_only=True)  # beside products: gradients of the embedding
        deterministic: Any = torch.utils.deterministic
        deterministic.fill_uninitialized_memory = False
    names = ["f32", *(name for name in options.runs if name != "f32")]
    study = Study(names, sizes, probes=options.probes, rate=rate, device=options.device)
    report = Report(options.out, sizes["steps"])
    try:
        study.train(report.step)
    except KeyboardInterrupt:
        print(f"\nstopped after {study.results['steps']} of {sizes['steps']} steps", file=sys.stderr)
    finally:
        report.write(study.results)
    if study.results["steps"]:
        print(tables(study.results))
    return study.results


if __name__ == "__main__":
    main()
