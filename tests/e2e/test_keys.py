"""Keys and the search box in a browser."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, expect
from pytest_django.live_server_helper import LiveServer

from gpuadmin.accounts.roles import Role
from gpuadmin.fleet.models import Cluster
from tests.e2e.browser import NARROW, enter, picture, watched

pytestmark = [pytest.mark.e2e, pytest.mark.django_db(transaction=True)]


def test_the_slash_searches_and_arrows_lead_to_the_find(
    live_server: LiveServer, browser: Browser, fleet: Cluster, people: dict[Role, str]
) -> None:
    with watched(browser, live_server.url) as shown:
        page = shown.page
        enter(page, live_server.url, people[Role.VIEWER])
        page.goto("/")
        page.keyboard.press("/")
        page.keyboard.type("h100-0")
        expect(page.locator("#found a")).to_have_count(4)
        picture(page, "search")
        assert shown.axe() == []
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        expect(page.locator("#found a").nth(1)).to_be_focused()
        page.keyboard.press("Enter")
        page.wait_for_url("**/nodes/h100-02")
        assert shown.complaints == []


def test_j_and_k_walk_x_ticks_enter_opens_and_the_question_mark_tells(
    live_server: LiveServer, browser: Browser, fleet: Cluster, people: dict[Role, str]
) -> None:
    with watched(browser, live_server.url) as shown:
        page = shown.page
        enter(page, live_server.url, people[Role.OPERATOR])
        page.goto("/nodes?sort=node")
        page.keyboard.press("?")
        expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
        picture(page, "keys")
        page.keyboard.press("Escape")
        for key in "jjk":
            page.keyboard.press(key)
        expect(page.get_by_role("link", name="a100-01")).to_be_focused()
        page.keyboard.press("x")
        expect(page.locator("#bulk")).to_contain_text("1 node")
        page.get_by_role("link", name="a100-01").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/nodes/a100-01")
        assert shown.complaints == []


def test_the_box_and_its_finds_fit_a_telephone(
    live_server: LiveServer, browser: Browser, fleet: Cluster, people: dict[Role, str]
) -> None:
    with watched(browser, live_server.url, size=NARROW, theme="dark") as shown:
        page = shown.page
        enter(page, live_server.url, people[Role.VIEWER])
        page.goto("/nodes/h100-02")
        page.locator("#find").fill("llm")
        expect(page.locator("#found a").first).to_be_visible()
        picture(page, "search-390")
        assert shown.sideways() == []
        assert shown.axe("color-contrast") == []
        page.goto("/search?q=llm")
        picture(page, "search-page-390")
        assert shown.sideways() == []
