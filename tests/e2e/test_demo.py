"""The demo in Chromium: every page, and a taint that kubectl sees (issue 2, done when 3)."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from dev.processes import wait_until
from tests.dev.test_demo import Demo, demo
from tests.e2e.browser import sign_in, watched
from tests.e2e.test_screens import PAGES

__all__ = ["demo"]  # the fixture
pytestmark = pytest.mark.e2e
KUBECTL = Path(sys.executable).with_name("kubectl")


@pytest.fixture
def running(demo: Demo) -> Iterator[Demo]:
    demo.start()
    yield demo
    demo.process.terminate()
    demo.process.wait(timeout=20)
    assert wait_until(lambda: not demo.pids(), 10)


@pytest.mark.timeout(300)
def test_a_taint_made_in_the_browser_is_seen_by_kubectl(running: Demo, browser: Browser) -> None:
    _, url, name, password = running.ready.rsplit(" ", 3)
    faults: list[str] = []
    with watched(browser, url) as shown:
        page, sheet = shown.page, shown.page.locator("dialog#sheet")
        sign_in(page, name, password)
        for place, address in PAGES.items():
            page.goto(address)
            faults += [f"{place}: {fault}" for fault in [*shown.sideways(), *shown.axe()]]
        shown.complaints = [text for text in shown.complaints if "404" not in text]

        page.goto("/nodes/l40s-01")
        page.get_by_role("link", name="Edit taints…").click()
        sheet.get_by_label("Key").fill("e2e.example/maintenance")
        sheet.get_by_label("NoExecute").check()
        sheet.get_by_role("button", name="Preview").click()
        expect(sheet.get_by_role("heading", name="pods will be ended")).to_be_visible()
        sheet.get_by_label("Type l40s-01").fill("l40s-01")
        sheet.get_by_label("Why").fill("to see it end")
        sheet.get_by_role("button", name="Run the change").click()
        expect(sheet.get_by_text("Verified by a fresh read")).to_be_visible(timeout=90_000)
        assert "key: e2e.example/maintenance" in _yaml_of_node(running, "l40s-01")

        sheet.get_by_role("link", name="Undo…").click()
        sheet.get_by_label("Why").fill("and come back")
        sheet.get_by_role("button", name="Run the change").click()
        expect(sheet.get_by_text("Verified by a fresh read")).to_be_visible(timeout=60_000)
        assert "e2e.example" not in _yaml_of_node(running, "l40s-01")
        assert [*faults, *shown.complaints] == []


def _yaml_of_node(demo: Demo, name: str) -> str:
    command = [str(KUBECTL), "get", "node", name, "-o", "yaml"]
    environ = os.environ | {"KUBECONFIG": str(demo.home / "kubeconfig")}
    return subprocess.run(
        command, env=environ, capture_output=True, text=True, check=True, timeout=20
    ).stdout
