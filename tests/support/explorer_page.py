"""The explorer in a real browser: one Chromium for all tests, a page for each, and what must not happen on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from oracles import CHROMIUM

from warpmma.show import explorer_page

__all__ = ["SIZES", "browsing", "frames", "opened", "turned"]

SIZES = {"phone": (400, 800), "tablet": (900, 1100), "desktop": (1600, 1000)}


@cache
def _folder() -> TemporaryDirectory[str]:
    return TemporaryDirectory(prefix="warpmma-explorer-")


@cache
def address() -> str:
    """Where the page lies."""
    path = Path(_folder().name) / "explorer.html"
    path.write_text(explorer_page(), encoding="utf-8")
    return path.as_uri()


@contextmanager
def browsing() -> Iterator[Any]:
    """Start Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Watched:
    """A page, with all that it asked for and all that it complained of."""

    def __init__(self, browser: Any, size: str, scheme: str) -> None:
        width, height = SIZES[size]
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)


@contextmanager
def opened(browser: Any, state: str = "", *, size: str = "desktop", scheme: str = "light") -> Iterator[Any]:
    """Open the page in a state; in the end it must have asked for nothing but itself, and complained of nothing."""
    watched = Watched(browser, size, scheme)
    try:
        url = address() + (f"#{state}" if state else "")
        watched.page.goto(url)
        yield watched.page
        assert watched.complaints == []
        assert {request.partition("#")[0] for request in watched.requests} == {address()}
    finally:
        watched.context.close()


def turned(page: Any, state: str) -> None:
    """Turn an open page to another state, which a link in it would do."""
    page.evaluate(
        """(state) => new Promise((done) => {
          if (location.hash.slice(1) === state) return done();
          addEventListener("hashchange", () => done(), { once: true });
          location.hash = state;
        })""",
        state,
    )


def frames(page: Any) -> None:
    """Let the page draw what it was asked to."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done())))")
