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
        _PAGES.pop(browser, None)
        browser.close()


class Watched:
    """The browser's page, with all that it asked for and all that it complained of since it was opened."""

    def __init__(self, browser: Any) -> None:
        self.context = browser.new_context(reduced_motion="reduce")
        self.page = self.context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _heard(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def clear(self, size: str, scheme: Any) -> None:
        """Make it a new page: nothing loaded, heard or kept, and the mouse outside."""
        if self.page.url != "about:blank":
            self.page.evaluate("localStorage.clear()")
            self.page.goto("about:blank")
        self.requests.clear()
        self.complaints.clear()
        width, height = SIZES[size]
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme=scheme)
        self.page.mouse.move(-1, -1)


_PAGES: dict[Any, Watched] = {}
"""One of each browser, for all tests: to start a page takes longer than most of what they do on it."""


@contextmanager
def opened(browser: Any, state: str = "", *, size: str = "desktop", scheme: str = "light") -> Iterator[Any]:
    """Open the page in a state; in the end it must have asked for nothing but itself, and complained of nothing."""
    watched = _PAGES.pop(browser, None) or Watched(browser)
    try:
        watched.clear(size, scheme)
        url = address() + (f"#{state}" if state else "")
        watched.page.goto(url)
        yield watched.page
        assert watched.complaints == []
        assert {request.partition("#")[0] for request in watched.requests} == {address()}
    except BaseException:
        watched.context.close()  # the next test gets another one
        raise
    _PAGES[browser] = watched


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
