"""Draw timelines: `python -m lab.draw.timelines` runs the kernel of the page on debugging, and writes its picture.

The source is the block `product.cu` of docs/howto/debug_hopper_kernel.md; it needs NVRTC.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

import warpmma as wm

__all__ = ["PICTURE", "drawn", "source"]

_DOCS = Path(__file__).parents[2] / "docs"
PICTURE = _DOCS / "pictures" / "timeline_hopper.svg"


def source() -> str:
    """Return the kernel of the page."""
    page = (_DOCS / "howto" / "debug_hopper_kernel.md").read_text()
    found = re.search(r"<!-- file: product.cu -->\n```text\n(.*?)```", page, re.S)
    if found is None:
        raise ValueError("the page has no block product.cu")
    return found[1]


def drawn() -> str:
    """Draw its timeline, of eight tiles."""
    device = wm.Device("sm_90a")
    maps = [wm.TensorMap(device.array(np.ones((64, 512), np.float16)), (64, 64), swizzle=128) for _ in "ab"]
    d = device.empty((64, 64), np.float32)
    entry = wm.cuda.load(source(), arch="sm_90a", name="product.cu")["product"]
    report = entry.launch(device, 1, 256, [*maps, d, 8], timeline=True)
    assert report.timeline is not None
    return report.timeline.svg()


if __name__ == "__main__":
    PICTURE.write_text(drawn())
