"""Photograph the explorer for its page in the documentation: `.[browser]`, and a Chromium on the PATH.

python -m lab.draw.explorer           # docs/explorer/*.png
python -m lab.draw.explorer --all OUT # every state, at three sizes, light and dark, to be looked at
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from warpmma.show import explorer_page

__all__ = ["main"]

PAGES = Path(__file__).parents[2] / "docs" / "explorer"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
WGMMA = "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"
STATES = {
    "registers": "",
    "lanes": "by=lane",
    "metadata": f"i={SPARSE}&op=metadata",
    "scales": "i=mxf4nvf4%204x&op=scale_a&thread_a=1",
    "bits": "i=m16n8k256&col=69",
    "matrices": "i=ldmatrix.sync.aligned.m8n8.x4.trans.b16&op=D&matrix=2",
    "wmma": "i=wmma.load.a.sync.aligned.row.m16n16k16.f16&on=sm_70",
    "warpgroup": f"i={WGMMA}&op=C&row=35&col=101",
    "shared": f"view=shared&i={WGMMA.replace('n256', 'n32')}&op=B",
    "sums": "view=sums&t1=sm_80&t2=sm_90&a=1,+6x0,+2x2^-24&b=1&c=0",
    "fp8": "view=sums&i=m16n8k32.row.col.f32.e4m3.e4m3&t1=sm_89&t2=sm_120a&a=256,+31x2&b=256,+31x2&c=0",
}
"""What is photographed, and the address that leads there."""
SHOWN = {"registers": "light", "shared": "light", "sums": "light"}
SHOWN_SIZE = (1280, 900)
SIZES = ((400, 800), (900, 1100), (1600, 1000))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", metavar="OUT", type=Path, help="every state, size and theme, into this folder")
    options = parser.parse_args(arguments)
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        parser.error("no chromium, chromium-browser or google-chrome on the PATH")
    from playwright.sync_api import sync_playwright

    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = Path(folder) / "explorer.html"
        page.write_text(explorer_page(), encoding="utf-8")
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for path, state, size, scheme in _wanted(options.all):
            path.parent.mkdir(parents=True, exist_ok=True)
            _photograph(chromium, f"{page.as_uri()}#{state}", path, size, scheme)
            print(f"{path}: {path.stat().st_size:,} bytes")
        chromium.close()
    return 0


def _wanted(everything: Path | None) -> Iterator[tuple[Path, str, tuple[int, int], str]]:
    if everything is None:
        for name, scheme in SHOWN.items():
            yield PAGES / f"{name}.png", STATES[name], SHOWN_SIZE, scheme
        return
    for name, state in STATES.items():
        for size in SIZES:
            for scheme in ("light", "dark"):
                yield everything / f"{name}-{size[0]}-{scheme}.png", state, size, scheme


def _photograph(chromium: Any, address: str, path: Path, size: tuple[int, int], scheme: str) -> None:
    width, height = size
    page = chromium.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
    page.goto(address)
    page.wait_for_selector("h1")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    page.screenshot(path=path)
    page.close()


if __name__ == "__main__":
    sys.exit(main())
