"""Chromium, and what we hold every page to: no console error, no CSP violation, nothing serious by
axe, nothing that scrolls sideways."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from django.conf import settings
from django.test import Client
from playwright.sync_api import Browser, ConsoleMessage, Page, Playwright

from gpuadmin.accounts.models import User

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "var" / "screens"
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = ("/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
Theme = Literal["light", "dark"]
WIDE, NARROW = (1440, 900), (390, 844)
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
SERIOUS = ("serious", "critical")


def launch(playwright: Playwright) -> Browser:
    """The machine's Chromium; none is downloaded."""
    found = next(path for path in CHROMIUM if Path(path).exists())
    return playwright.chromium.launch(executable_path=found, args=FLAGS)


@dataclass
class Watched:
    """A page, and everything that it complained of."""

    page: Page
    complaints: list[str] = field(default_factory=list)

    def listen(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text}")

    def axe(self, rule: str = "") -> list[str]:
        """What axe finds serious, with the place of each; by one rule alone where it is named."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        only = {"type": "rule", "values": [rule]} if rule else {"type": "tag", "values": WCAG}
        options = {"runOnly": only, "resultTypes": ["violations"]}
        found: list[dict[str, Any]] = self.page.evaluate(
            "options => axe.run(document, options).then(result => result.violations)", options
        )
        return [
            f"{rule['id']}: {node['target']} {node['failureSummary']}"
            for rule in found
            if rule["impact"] in SERIOUS
            for node in rule["nodes"]
        ]

    def sideways(self) -> list[str]:
        """Elements that make the page itself scroll sideways; boxes that scroll inside are fine."""
        found: list[str] = self.page.evaluate(
            """() => {
              const root = document.documentElement;
              if (root.scrollWidth <= root.clientWidth) return [];
              const wide = (e) => e.getBoundingClientRect().right > root.clientWidth + 1;
              return [...document.querySelectorAll("body *")].filter(wide).slice(0, 5)
                .map((e) => `${e.tagName}.${e.className}: ${e.textContent.slice(0, 40)}`)
            }"""
        )
        return found


@contextmanager
def watched(
    browser: Browser, url: str, *, size: tuple[int, int] = WIDE, theme: Theme = "light", **kw: Any
) -> Iterator[Watched]:
    """A fresh browser session on the server at ``url``."""
    context = browser.new_context(
        base_url=url,
        viewport={"width": size[0], "height": size[1]},
        color_scheme=theme,
        reduced_motion="reduce",
        **kw,
    )
    context.set_default_timeout(10_000)
    shown = Watched(context.new_page())
    shown.listen()
    try:
        yield shown
    finally:
        context.close()


def enter(page: Page, url: str, name: str) -> None:
    """As somebody who has signed in already; for tests that are about something else."""
    client = Client()
    client.force_login(User.objects.get(username=name))
    cookie = client.cookies[settings.SESSION_COOKIE_NAME].value
    page.context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": cookie, "url": url}])


def picture(page: Page, name: str, *, whole: bool = False) -> None:
    """A picture in var/screens where SCREENS is set (`make screens`): each costs a quarter of a
    second, and nothing is held to its pixels."""
    if os.environ.get("SCREENS"):
        page.screenshot(path=FOLDER / f"{name}.png", full_page=whole)


def sign_in(page: Page, name: str, password: str) -> None:
    """Through the page, as everybody does."""
    page.goto("/sign-in")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/sign-in" not in url)
