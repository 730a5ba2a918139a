"""The heat map as a person meets it: drawn by a script, one tab stop, arrows."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect
from pytest_django.live_server_helper import LiveServer

from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import Cluster
from tests.e2e.browser import enter, watched

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


def test_the_map_is_one_tab_stop_and_arrows_move_in_it(
    live_server: LiveServer, browser: Browser, fleet: Cluster, people: dict[Role, str]
) -> None:
    with watched(browser, live_server.url) as shown:
        page = shown.page
        enter(page, live_server.url, people[Role.VIEWER])
        page.goto("/")
        stops = page.locator(".map a[tabindex='0']")
        expect(stops).to_have_count(1)
        stops.focus()
        first = focused(page)
        page.keyboard.press("ArrowRight")
        assert focused(page) == first.replace("#gpu-0", "#gpu-1")
        page.keyboard.press("ArrowDown")
        below = focused(page)
        assert below.endswith("#gpu-1")
        assert below.split("#")[0] != first.split("#")[0]
        page.keyboard.press("Home")
        assert focused(page) == below.split("#")[0]
        expect(stops).to_have_count(1)
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: url.endswith("#gpu-0"))
        assert shown.complaints == []


def test_a_cell_says_in_words_all_that_it_shows(
    live_server: LiveServer, browser: Browser, fleet: Cluster, people: dict[Role, str]
) -> None:
    with watched(browser, live_server.url) as shown:
        enter(shown.page, live_server.url, people[Role.VIEWER])
        shown.page.goto("/")
        lost = shown.page.locator('a[href="/nodes/h100-02#gpu-7"]')
        expect(lost).to_have_attribute(
            "aria-label",
            "h100-02 GPU 7, H100 80GB HBM3: failed: "
            "fell off the bus (XID 79); held by llm-train/eval-harness-3",
        )
        cut = shown.page.locator('a[href="/nodes/a100-03#gpu-0"] .face i')
        assert cut.count() > 1


def focused(page: Page) -> str:
    href: str = page.evaluate("document.activeElement.getAttribute('href')")
    return href
