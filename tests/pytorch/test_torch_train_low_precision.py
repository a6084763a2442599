"""The example that trains a transformer in bf16, fp8 and NVFP4 with the sums of several GPUs."""

from __future__ import annotations

import json
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import skip_without

import warpmma as wm

skip_without("PyTorch")
from torch_cases import torch  # noqa: E402

low: Any = import_module("low_precision")
report: Any = import_module("low_precision_report")
example: Any = import_module("train_low_precision")

# k is 256 in gradients of weights: two parts of a promoted sum.
SMALL = ["--width", "32", "--layers", "1", "--context", "16", "--batch", "16", "--steps", "2", "--probes", "1"]


@cache
def results() -> dict[str, Any]:
    found: dict[str, Any] = example.main(SMALL)
    return found


def pair(*runs: str) -> dict[str, Any]:
    return next(x for x in results()["pairs"] if x["runs"] == runs)


def error(run: str, kind: str) -> float:
    return float(results()["errors"][run][0][kind])


def test_every_run_takes_every_step() -> None:
    assert results()["steps"] == 2 and list(results()["losses"]) == list(example.RUNS)
    assert all(len(x) == 2 and 3 < min(x) < max(x) < 8 for x in results()["losses"].values())


def test_two_gpus_differ_where_their_sums_do() -> None:
    assert pair("bf16 sm_80", "bf16 sm_90")["first"] == {"step": 1, "where": "block 1, qkv: result"}
    # k is 32, 32 and 128 forward: promotion changes nothing before the first gradient of weights.
    first = pair("fp8 sm_90a wgmma", "fp8 sm_90a wgmma promoted")["first"]
    assert first == {"step": 1, "where": "block 1, down: gradient of the weights"}
    losses = results()["losses"]
    assert losses["fp8 sm_90a wgmma"][0] == losses["fp8 sm_90a wgmma promoted"][0]


def test_one_arithmetic_on_two_targets_gives_one_training() -> None:
    runs = "NVFP4 sm_120a", "NVFP4 sm_121a"
    assert pair(*runs)["first"] is None
    assert results()["losses"][runs[0]] == results()["losses"][runs[1]]
    assert results()["errors"][runs[0]] == results()["errors"][runs[1]]


def test_errors_of_formats_and_of_sums() -> None:
    formats = [error(run, "all") for run in ("bf16 sm_90", "fp8 sm_120a", "NVFP4 sm_120a")]
    assert formats == sorted(formats)
    own = {run: error(run, "own") for run in list(example.RUNS)[1:]}
    assert own["fp8 sm_120a"] < own["bf16 sm_90"] < own["bf16 sm_80"] < own["fp8 sm_90a wgmma promoted"]
    assert 1.5 * own["fp8 sm_90a wgmma promoted"] < own["fp8 sm_90a wgmma"]


def test_a_run_does_not_depend_on_the_others() -> None:
    alone = example.main([*SMALL, "--probes", "0", "--runs", "fp8 sm_89"])
    assert list(alone["losses"]) == ["f32", "fp8 sm_89"]
    assert all(alone["losses"][run] == results()["losses"][run] for run in alone["losses"])
    assert alone["pairs"] == [] and alone["errors"]["fp8 sm_89"] == []


def test_products_and_gradients_are_exact_where_formats_are() -> None:
    """Of small integers, times a power of two that makes the largest one the format's."""
    seed = torch.Generator().manual_seed(0)
    a, b, g = (torch.randint(-2, 3, shape, generator=seed).float() for shape in ((32, 64), (64, 48), (32, 48)))
    for x in (a, b, g):
        x[0, 0] = 3.5  # 448 = 3.5 * 2**7, 57344 = 3.5 * 2**14; e2m1 has no 3.5
    for form, target in (("f32", None), ("bf16", "sm_80"), ("bf16", None), ("fp8", "sm_89"), ("fp8", None)):
        x, y = a.clone().requires_grad_(), b.clone().requires_grad_()
        told: list[tuple[str, str]] = []

        def note(name: str, what: str, result: Any, exact: Any, told: list[tuple[str, str]] = told) -> None:
            assert torch.equal(result, exact())
            told.append((name, what))

        d = low.LowPrecisionMatmul.apply(x, y, low.Arithmetic(form, target), "x", note)
        d.backward(g)
        assert torch.equal(d, a @ b) and torch.equal(x.grad, g @ b.mT) and torch.equal(y.grad, a.mT @ g)
        assert told == [("x", w) for w in ("result", "gradient of the weights", "gradient of the input")]


def test_nvfp4_in_bf16_has_the_values_of_nvfp4() -> None:
    x = torch.randn(48, 64, generator=torch.Generator().manual_seed(0))
    operands: list[tuple[Any, Any]] = [("A", x), ("B", x.mT)]
    for operand, matrix in operands:
        values, scale = low.rounded(matrix, operand, "NVFP4", False)
        wanted = wm.scaling.quantize(matrix, low.NVFP4, operand).dequantize()
        np.testing.assert_array_equal(values.double().numpy() * float(scale), wanted)


def test_later_bytes_do_not_change_earlier_scores() -> None:
    model, text = low.Transformer(32, 2, 16), torch.arange(16).repeat(2, 1)
    other = text.clone()
    other[:, 9:] += 100

    def scores(given: Any) -> Any:
        return model(given, lambda name, a, b, wide=False: low.product(a, b, low.Arithmetic("bf16", "sm_80")))

    one, two = scores(text), scores(other)
    assert torch.equal(one[:, :9], two[:, :9]) and not torch.equal(one[:, 9], two[:, 9])


def test_numbers_that_json_lacks_are_null(tmp_path: Path) -> None:
    found = {**results(), "losses": {run: [np.nan, np.inf] for run in results()["losses"]}}
    writer = report.Report(tmp_path, 2)
    writer.write(found, picture=False)
    text = (tmp_path / "results.json").read_text()
    assert "NaN" not in text and json.loads(text)["losses"]["f32"] == [None, None]


def test_stopped_in_a_step_the_report_has_the_steps_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step, names, drawn = example.Run.step, ["bf16 sm_80", "bf16 sm_90"], []

    def stopped(run: Any, text: Any, rate: float) -> Any:
        if run.name == names[1] and run.trace:
            raise KeyboardInterrupt
        return step(run, text, rate)

    monkeypatch.setattr(example.Run, "step", stopped)
    monkeypatch.setattr(report, "draw", lambda found, folder: drawn.append((found, folder)))
    found = example.main([*SMALL, "--runs", *names, "--out", str(tmp_path / "study")])
    said = capsys.readouterr()
    assert "stopped after 1 of 2 steps" in said.err
    assert {x.name for x in (tmp_path / "study").iterdir()} == {"results.json", "tables.md"}
    read = json.loads((tmp_path / "study/results.json").read_text())
    assert {len(x) for x in read["losses"].values()} == {read["steps"]} == {1}
    assert (tmp_path / "study/tables.md").read_text() == said.out
    assert "| bf16 sm_80, bf16 sm_90 | step 1, block 1, qkv: result |" in said.out
    assert drawn == [(found, tmp_path / "study")]


def test_stopped_in_the_first_step_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(example.Run, "step", stopped)
    assert example.main([*SMALL, "--out", str(tmp_path / "study")])["steps"] == 0
    assert not (tmp_path / "study").exists()


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    report.replaced(tmp_path / "a", b"new")
    assert [x.name for x in tmp_path.iterdir()] == ["a"] and (tmp_path / "a").read_bytes() == b"new"


def test_a_folder_is_drawn_again(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report.draw(json.loads(json.dumps(results())), tmp_path)
    assert (tmp_path / "losses.png").read_bytes()[:4] == b"\x89PNG"
    assert "NVFP4 sm_120a, NVFP4 sm_121a: equal" in (tmp_path / "losses.svg").read_text()
