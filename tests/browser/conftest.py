"""A real browser, one for all tests. Without one they are skipped, and the run's end says so."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from hotloop.report.energy_rows import Prices
from hotloop.report.html.render import render
from hotloop.report.page import page
from hotloop.study import Study

NAMES = ("chromium", "chromium-browser", "google-chrome")


def missing() -> str:
    """Why the page cannot be opened here; empty when it can."""
    if importlib.util.find_spec("playwright") is None:
        return "playwright is not installed"
    if not any(map(shutil.which, NAMES)):
        return "no chromium is installed"
    return ""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if why := missing():
        pytest.skip(f"{why}: the report was not looked at in a browser")
    from playwright.sync_api import sync_playwright

    program = next(path for path in map(shutil.which, NAMES) if path)
    with sync_playwright() as driver:
        # Without its sandbox, which containers seldom allow: it opens nothing but our own page.
        opened = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


@dataclass
class Window:
    """The report, opened, and everything that the browser had to say about it."""

    page: Any
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def tip(self) -> str:
        shown = self.page.locator(".tip:not([hidden])")
        return str(shown.inner_text()) if shown.count() else ""


@cache
def made(study: Callable[[], Study], logs: tuple[tuple[str, str], ...]) -> str:
    return render(page(study(), dict(logs), Prices(hour=3.2, currency="EUR")))


class Opener:
    def __init__(self, browser: Any, folder: Path) -> None:
        self._browser, self._folder = browser, folder
        self._contexts: list[Any] = []

    def __call__(
        self,
        study: Callable[[], Study],
        width: int = 1280,
        theme: str = "light",
        logs: dict[str, str] | None = None,
        **more: Any,
    ) -> Window:
        path = self._folder / "report.html"
        path.write_text(made(study, tuple((logs or {}).items())), "utf-8")
        size = {"width": width, "height": 900}
        context = self._browser.new_context(viewport=size, color_scheme=theme, **more)
        self._contexts.append(context)
        window = Window(context.new_page())
        window.page.on("console", lambda said: window.complaints.append(said.text))
        window.page.on("pageerror", lambda error: window.complaints.append(str(error)))
        window.page.on("dialog", lambda dialog: window.complaints.append("a dialog opened"))
        window.page.on("request", lambda request: window.requests.append(request.url))
        window.page.goto(path.as_uri())
        assert window.requests == [path.as_uri()]
        return window

    def close(self) -> None:
        for context in self._contexts:
            context.close()


@pytest.fixture
def opened(browser: Any, tmp_path: Path) -> Iterator[Opener]:
    opener = Opener(browser, tmp_path)
    yield opener
    opener.close()
