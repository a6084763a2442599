"""Bank conflicts of a .cu kernel, with the picture: `cuda/transposed.cu` with a tile of 32 and of 33 columns.

`python examples/cuda_bank_conflicts.py FILE.svg` writes the picture. Needs `pip install 'warpmma[cuda]'`, and no GPU.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import warpmma as wm
from warpmma.machine import Launch

SOURCE = Path(__file__).parent / "cuda" / "transposed.cu"
ROWS, COLUMNS = 96, 64


def launch(pitch: int) -> Launch:
    """Transpose a matrix, and check the result; return the report."""
    module = wm.cuda.load(SOURCE, names=[f"transposed<{pitch}>"])
    device = wm.Device("sm_90")
    x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    y = device.empty((COLUMNS, ROWS), np.float32)
    grid = COLUMNS // 32, ROWS // 32
    report = module[f"transposed<{pitch}>"].launch(device, grid, (32, 8), [device.array(x), y, ROWS, COLUMNS])
    assert np.array_equal(y.numpy(), x.T)
    return report


def picture(report: Launch) -> str:
    """Draw the line with the most conflicts, as SVG."""
    sites = report.costs.sites
    return report.svg(max(sites, key=lambda site: sites[site].conflicts))


def main(path: str = "") -> None:
    """Count conflicts with both pitches; write the picture of the worse."""
    for pitch in (32, 33):
        report = launch(pitch)
        for site, entry in report.costs.sites.items():
            where = f"{Path(site.file).name}:{site.line}"
            print(f"pitch {pitch}: {where} {site.mnemonic}: {entry.wavefronts} wavefronts, {entry.conflicts} lost")
    if path:
        Path(path).write_text(picture(launch(32)), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:2])
